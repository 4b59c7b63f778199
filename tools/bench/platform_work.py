"""Work on the local platform, in one process: `python -m bench.platform_work KIND URL API_KEY`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import sys
import time
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

from bench.sides import connect, sandbox_request
from bench.workers import Answer, Stopwatch, answer_questions, memory_kib
from prime_core import AsyncAPIClient, Config
from prime_sandboxes import AsyncSandboxClient, AsyncSandboxHandle, Outcome

TICK = 0.01  # seconds between two looks at the event loop's lag
FIRST_SECONDS = 1.0  # of many waiters, in which all of them begin
LEDGER_PAUSE = 0.2
LIVE_SECONDS = 100.0  # less than a sandbox of a fleet waits for its start
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
COMMAND = "command_session_start"
STATUSES = "batch_get_sandbox_statuses"


class Platform:
    """What a local platform tells about itself, and its clock."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def ledger(self) -> Answer:
        return await asyncio.to_thread(self._call, "ledger", None)

    async def advance(self, seconds: float) -> None:
        await asyncio.to_thread(self._call, "clock/advance", {"seconds": seconds})

    async def lives(self, count: int) -> None:
        """Waits until so many sandboxes live."""
        deadline = time.monotonic() + LIVE_SECONDS
        while (live := (await self.ledger())["sandboxes"]["live"]) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {live} of {count} sandboxes live")
            await asyncio.sleep(LEDGER_PAUSE)

    def _call(self, path: str, body: object) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        with OPENER.open(f"{self._url}/_local/{path}", data, timeout=60) as response:
            answer: Answer = json.load(response)
        return answer


@contextlib.asynccontextmanager
async def lags() -> AsyncIterator[list[float]]:
    """Collects by how many seconds the loop is late for a tick."""
    late: list[float] = []

    async def tick() -> None:
        while True:
            due = time.perf_counter() + TICK
            await asyncio.sleep(TICK)
            late.append(time.perf_counter() - due)

    ticker = asyncio.create_task(tick())
    try:
        yield late
    finally:
        ticker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticker


async def throttled(url: str, key: str, count: int) -> Answer:
    """Creates as fast as the documented burst allows."""
    api = AsyncAPIClient(config=Config(key, base_url=url))
    async with api, AsyncSandboxClient(client=api) as client:
        watch = Stopwatch()
        await asyncio.gather(*(client.create(sandbox_request()) for _ in range(count)))
        took = watch.read()
    ledger = await Platform(url).ledger()
    requests = ledger["requests"]["create_sandbox"]
    return {**took, "requests": requests, "refused": ledger["responses"].get("429", 0)}


async def waiters(url: str, key: str, count: int, seconds: float, start_delay: float) -> Answer:
    """Waits for sandboxes that all start after so many seconds."""
    platform = Platform(url)
    async with connect(url, key) as client:
        made = await asyncio.gather(*(client.create(sandbox_request()) for _ in range(count)))
        ids = [sandbox.id for sandbox in made]
        async with lags() as late:
            watch = Stopwatch()
            waiting = asyncio.create_task(client.bulk_wait_for_creation(ids))
            await asyncio.sleep(FIRST_SECONDS)
            started = len(late)
            await asyncio.sleep(seconds)
            took = watch.read()
            asked = (await platform.ledger())["requests"][STATUSES]
            waited = len(late)
            await platform.advance(start_delay)
            await waiting
    return {
        "p99_ms": statistics.quantiles(late, n=100)[98] * 1000,
        "max_ms": max(late) * 1000,
        "first_max_ms": max(late[:started]) * 1000,
        "waiting_max_ms": max(late[started:waited]) * 1000,
        "end_max_ms": max(late[waited:]) * 1000,
        "calls_per_second": asked / took["wall"],
        "cpu_share": took["cpu"] / took["wall"],
    }


async def fleet(url: str, key: str, count: int, start_delay: float) -> Answer:
    """A fleet whose sandboxes all live at once, and all start when all are created."""
    platform = Platform(url)
    async with connect(url, key) as client:
        # What is needed once, such as models, is no sandbox's cost.
        await client.delete((await client.create(sandbox_request())).id)
        once = requests_but_commands(await platform.ledger())
        before, _ = memory_kib()
        watch = Stopwatch()
        async with client.fleet(limit=count) as sandboxes:
            outcomes = sandboxes.map(do_nothing, range(count), request=sandbox_request())
            work = asyncio.create_task(count_failures(outcomes))
            await platform.lives(count)
            created = watch.read()
            grown = memory_kib()[0] - before
            await platform.advance(start_delay)
            failed = await work
    ledger = await platform.ledger()
    return {
        **watch.read(),
        "created_after": created["wall"],
        "kib_each": grown / count,
        "requests_each": (requests_but_commands(ledger) - once) / count,
        "failed": failed,
        "live": ledger["sandboxes"]["live"],
    }


async def do_nothing(sandbox: AsyncSandboxHandle, item: int) -> None:
    """The work of the fleet: what is measured is all that comes before and after it."""


async def count_failures(outcomes: AsyncIterator[Outcome[int, None]]) -> int:
    return sum([outcome.error is not None async for outcome in outcomes])


def requests_but_commands(ledger: Answer) -> int:
    counts: dict[str, int] = ledger["requests"]
    return sum(number for name, number in counts.items() if name != COMMAND)


KINDS = {work.__name__: work for work in (throttled, waiters, fleet)}


def main(kind: str, url: str, key: str) -> None:
    work: Any = KINDS[kind]
    answer_questions(lambda **question: asyncio.run(work(url, key, **question)))


if __name__ == "__main__":
    main(*sys.argv[1:])
