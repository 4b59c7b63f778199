"""What a program does with sandboxes, and the ways in which it stops doing it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field

from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    AsyncSandboxHandle,
    CommandTimeoutError,
    CreateSandboxRequest,
    NotFoundError,
    Outcome,
    PrimeError,
)

REQUEST = CreateSandboxRequest(name="soak", docker_image="python:3.11-slim")
LIMIT = 12
COMMAND_TIMEOUT = 5.0  # seconds; the client gives up some 15 s later
# No fault lasts so long: work that does has waited for its deadline in place of an answer.
LONGEST_WORK = 15.0


class OwnError(Exception):
    """The program's own failure, to be told from the SDK's."""


@dataclass
class Tally:
    """What came of the work.

    Attributes:
        outcomes: how many of which kind: ``ok``, or the error's class.
        endings: how many pieces of work ended in which way.
        problems: what must never happen, in words.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def count(self, outcome: Outcome[int, str]) -> None:
        """Counts an outcome; a wrong answer, or an error of no documented kind, is a problem."""
        error = outcome.error
        self.outcomes["ok" if error is None else type(error).__name__] += 1
        if error is None:
            if outcome.value != expected(outcome.item):
                self.problems.append(f"item {outcome.item} came to {outcome.value!r}")
        elif not isinstance(error, (PrimeError, OwnError)):
            self.problems.append(f"item {outcome.item} failed with {error!r}")
        if outcome.timings.worked > LONGEST_WORK:
            seconds = f"{outcome.timings.worked:.1f} s"
            self.problems.append(f"item {outcome.item} hung for {seconds}, then: {error!r}")


def expected(item: int) -> str:
    return f"begin {item} € end {item}\n"


async def command(sandbox: AsyncSandboxHandle, item: int) -> str:
    """Runs a short command; every so often one that fails, or lasts too long."""
    if item % 11 == 3:
        raise OwnError("the program's own failure")
    if item % 17 == 5:
        with contextlib.suppress(CommandTimeoutError):
            await sandbox.execute_command("sleep 30", timeout=0.3)
    result = await sandbox.execute_command(
        f"printf 'begin {item} € '; echo end {item}", timeout=COMMAND_TIMEOUT
    )
    return result.stdout


async def fleet_to_its_end(client: AsyncSandboxClient, tally: Tally, chance: random.Random) -> None:
    """Takes all outcomes: one for each item, and no sandbox for two."""
    items = range(chance.randint(1, 40))
    retries, ordered = chance.randint(0, 2), chance.random() < 0.5
    taken: list[Outcome[int, str]] = []
    async with client.fleet(LIMIT) as fleet:
        async for outcome in fleet.map(
            command, items, request=REQUEST, retries=retries, ordered=ordered
        ):
            taken.append(outcome)
            tally.count(outcome)
    if sorted(outcome.item for outcome in taken) != list(items):
        tally.problems.append(f"of {len(items)} items, {len(taken)} outcomes came")
    if ordered and [outcome.item for outcome in taken] != list(items):
        tally.problems.append("outcomes came out of order")
    used = [outcome.sandbox_id for outcome in taken if outcome.sandbox_id]
    if len(set(used)) != len(used):
        tally.problems.append("two items had one sandbox")


async def fleet_left_by_an_exception(
    client: AsyncSandboxClient, tally: Tally, chance: random.Random
) -> None:
    left = chance.randint(0, 20)
    with contextlib.suppress(OwnError):
        async with client.fleet(LIMIT) as fleet:
            async for outcome in fleet.map(command, range(40), request=REQUEST):
                tally.count(outcome)
                if outcome.item >= left:
                    raise OwnError("the body failed")


async def fleet_broken_out_of(
    client: AsyncSandboxClient, tally: Tally, chance: random.Random
) -> None:
    left = chance.randint(0, 20)
    async with client.fleet(LIMIT) as fleet:
        async for outcome in fleet.map(command, range(1_000_000), request=REQUEST):
            tally.count(outcome)
            if outcome.item >= left:
                break


async def fleet_cancelled(client: AsyncSandboxClient, tally: Tally, chance: random.Random) -> None:
    """Cancels a fleet at any moment, some a second time in the middle of its clean-up."""
    task = asyncio.ensure_future(fleet_to_its_end(client, tally, chance))
    for _ in range(chance.randint(1, 2)):
        await asyncio.wait([task], timeout=chance.uniform(0, 1.5))
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def creates_given_up(client: AsyncSandboxClient, tally: Tally, chance: random.Random) -> None:
    """Cancels creates at any moment; those that return are the program's to delete."""

    async def create() -> None:
        try:
            sandbox = await asyncio.wait_for(client.create(REQUEST), chance.uniform(0, 0.6))
        except (asyncio.TimeoutError, PrimeError) as error:
            tally.outcomes[f"create: {type(error).__name__}"] += 1
        else:
            tally.outcomes["create: ok"] += 1
            await delete(client, sandbox.id)

    await asyncio.gather(*(create() for _ in range(chance.randint(1, 15))))


async def delete(client: AsyncSandboxClient, sandbox_id: str) -> None:
    """Deletes as a program must that wants to be sure: until the platform says so."""
    while True:
        try:
            await client.delete(sandbox_id)
        except NotFoundError:
            return
        except APIError:
            await asyncio.sleep(0.1)
        else:
            return


WAYS = (
    fleet_to_its_end,
    fleet_to_its_end,
    fleet_left_by_an_exception,
    fleet_broken_out_of,
    fleet_cancelled,
    creates_given_up,
)
