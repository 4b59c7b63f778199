"""Every row of every package against the decision function, by the table of the matrix."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from cells import ROWS, Cell, Names
from certificates import Authority
from discovery import operations
from table import FAULTS, PATIENCE, Fault, Safety

from prime_core.attempts import attempt
from prime_core.decoding import read_object
from prime_core.limits import Scope
from prime_core.operations import Operation
from prime_core.outages import HostHealth
from prime_core.outcomes import Failure
from prime_core.retries import Retries, RetryQuota, ThrottleLog, may_repeat
from prime_core.transport import AsyncTransport, TransportSettings

OPERATIONS = operations()
SAFETIES: tuple[Safety, ...] = ("safe", "keyed", "unsafe")
# No row is sent more often than this.
ENOUGH = 10

PODS = Operation("POST /pods", "POST", "/api/v1/pods", "unsafe")
(POST_PODS,) = [row for row in ROWS if row.operation == PODS.id]


async def failure_of(fault: Fault, names: Names, authority: Authority) -> Failure:
    """What the core makes of a fault, from bytes on a socket."""
    cell = Cell(POST_PODS, fault, True, "async", names, authority)
    with cell.serving() as config:
        transport = AsyncTransport(config, TransportSettings(**cell.settings()))
        call = transport.prepare(PODS, read_object, body=b"{}")
        result = await attempt(call, transport._states.get())
        await transport.aclose()
    assert isinstance(result, Failure)
    return result


@pytest.fixture(scope="module")
def failures(authority: Authority) -> dict[str, Failure]:
    async def all_of_them(names: Names) -> list[Failure]:
        # One at a time: some have to fail within their deadline, not to miss it.
        return [await failure_of(fault, names, authority) for fault in FAULTS]

    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "all_proxy"):
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        names = Names()
        patch.setattr("socket.getaddrinfo", names.getaddrinfo)
        found = asyncio.run(all_of_them(names))
    return {fault.name: failure for fault, failure in zip(FAULTS, found, strict=True)}


def sends(row: Operation, failure: Failure, left: float) -> int:
    """How often a call of a row is sent while every attempt comes to the same failure."""
    budgets = Retries(row, RetryQuota(), ThrottleLog(), PATIENCE)
    scope, health, throttled = Scope(None), HostHealth(), 0.0
    for count in range(1, ENOUGH):
        if not budgets.grant(replace(failure), scope, health, left, throttled):
            return count
        throttled += max(0.0, scope.opens_at - time.monotonic())
        scope.opens_at = 0.0
    return ENOUGH


def test_rows_of_every_safety_are_found() -> None:
    assert {row.safety for row in OPERATIONS.values()} == set(SAFETIES)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_row_is_sent_as_often_as_the_table_says(name: str, failures: dict[str, Failure]) -> None:
    row = OPERATIONS[name]
    assert row.safety != "permitted", "a caller permits that, not a row"
    wrong = []
    for fault in FAULTS:
        left = 0.0 if fault.until_deadline else 10.0
        count = sends(row, failures[fault.name], left)
        if count not in fault.sends.of(row.safety):
            wrong.append(f"{fault.name}: {count} times, not {fault.sends.of(row.safety)}")
    assert wrong == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_row_that_is_unsafe_is_not_repeated_where_it_may_have_been_done(
    name: str, failures: dict[str, Failure]
) -> None:
    row = OPERATIONS[name]
    for fault in FAULTS:
        if fault.may_have_acted:
            outcome = failures[fault.name].outcome
            assert may_repeat(row, outcome) == (row.safety != "unsafe"), fault.name


def test_the_table_itself_repeats_nothing_unsafe_that_may_have_been_done() -> None:
    for fault in FAULTS:
        if fault.may_have_acted:
            assert fault.sends.unsafe == range(1, 2), fault.name


def test_the_table_names_each_fault_once() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
