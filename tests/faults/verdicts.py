"""Whether a cell of the fault matrix came out as the table says."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

from cells import DEADLINE, KEY, SECRETS, TEAM, Cell
from showing import shown
from table import OPEN_OUTCOME, PATIENCE

from prime_core import APIError
from prime_sandboxes import CommandTimeoutError

__all__ = ["problems"]

# What a busy machine may take on top of the time that a call is due to take, in seconds.
SLACK = 5.0
HERE = str(Path(__file__).parent)


def sends(cell: Cell) -> range:
    """How often the call of a cell may be sent while its fault lasts.

    Waits that the platform asks for take longer on a busy machine, so that fewer of them fit into
    the time for them; `test_every_row` checks the exact number, without a clock.
    """
    times = cell.fault.sends.of(cell.row.safety)
    waits = cell.fault.status in (429, 503) and times.start > 2
    return range(2, times.stop) if waits else times


def problems(cell: Cell, error: Exception | None, seconds: float) -> list[str]:
    """What is not as the table says."""
    found = [*_wire_problems(cell)]
    if seconds > (DEADLINE if cell.fault.until_deadline else 2 * PATIENCE) + SLACK:
        found.append(f"took {seconds:.1f} s")
    if cell.succeeds != (error is None):
        found.append(f"ended with {error!r}")
    elif error is not None:
        found += _error_problems(cell, error)
        found += _leaks(error)
    return [f"{cell}: {problem}" for problem in found]


def _wire_problems(cell: Cell) -> Iterator[str]:
    requests = cell.seen()
    sent = len(requests) + (cell.times - cell.servers[0].drop) * (cell.fault.strikes == "request")
    if cell.fault.strikes in ("name", "port", "handshake"):  # what failed there was not sent
        allowed = range(1, 2) if cell.succeeds else range(1)
    elif cell.succeeds:
        allowed = range(1, 2) if cell.fault.followed else range(2, 3)
    else:
        times = sends(cell)
        allowed = range(2, 3) if cell.renews else times
    if sent not in allowed:
        yield f"sent {sent} times, not {list(allowed)}"
    if len({request.headers["x-request-id"] for request in requests}) > 1 + cell.renews:
        yield "the request id changed"
    if cell.row.safety == "keyed":
        keys = {request.json["idempotency_key"] for request in requests}
        if len(keys) > 1 or not all(keys):
            yield f"the idempotency keys are {keys}"
    for request in cell.servers[0].requests:
        if request.target == "/elsewhere" and (KEY in str(request) or TEAM in str(request)):
            yield "another host got the key or the team"


def _error_problems(cell: Cell, error: Exception) -> Iterator[str]:
    fault = cell.fault
    if cell.row.gateway and fault.until_deadline:  # documented as an error of its own
        if not isinstance(error, CommandTimeoutError):
            yield f"raised {error!r}"
        assert isinstance(error.__cause__, Exception)
        error = error.__cause__
    if not isinstance(error, APIError) or type(error) is not fault.error:
        yield f"raised {error!r}"
        return
    allowed = sends(cell)
    if error.attempts not in allowed:
        yield f"counts {error.attempts} attempts, not {list(allowed)}"
    expected = {
        "operation": cell.row.operation,
        "status_code": fault.status,
        "sent": fault.sent,
        "phase": fault.phase,
        "problems": list(fault.problems) or None,
    }
    for name, value in expected.items():
        if getattr(error, name, None) != value:
            yield f"its {name} is {getattr(error, name, None)!r}, not {value!r}"
    ids = {request.headers["x-request-id"] for request in cell.seen()}
    if not error.request_id or (ids and error.request_id not in ids):
        yield f"its request id is {error.request_id!r}, not of {ids}"
    low, high = fault.retry_after or (None, None)
    if (error.retry_after is None) != (low is None) or not (
        low is None or high is None or low <= (error.retry_after or 0.0) <= high
    ):
        yield f"its retry_after is {error.retry_after!r}, not {fault.retry_after}"
    yield from _text_problems(cell, str(error))


def _text_problems(cell: Cell, text: str) -> Iterator[str]:
    open_outcome = OPEN_OUTCOME[cell.row.safety]
    if cell.fault.says not in text:
        yield f"says {text!r}"
    if (open_outcome in text) != cell.fault.may_have_acted:
        yield f"says of what may have been done: {text!r}"


def _leaks(error: Exception) -> Iterator[str]:
    """Where an error shows a key, a token or a sandbox's secret."""
    pickled = pickle.dumps(error)
    for secret in SECRETS:
        if secret.encode() in pickled:
            yield f"its pickle holds {secret}"
        yield from (f"shows {text}" for text in shown(error, HERE) if secret in text)
