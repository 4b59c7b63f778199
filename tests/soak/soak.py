"""Works through random faults for a time, and fails when anything was lost, doubled or left.

    python -m uv run python tests/soak/soak.py [--seconds 120] [--seed N]

A local platform runs in a process of its own. Round by round, with a new client and new faults
each, several fleets work at once and stop in all the ways that there are. At the end the
platform's ledger must show no sandbox alive, none made twice and each that was made deleted, and
this process must hold no more memory, descriptors or tasks than after the first rounds. The seed
is printed: with it, a round's faults and work are the same again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from weather import weather
from work import WAYS, Tally

from prime_local.subprocess_server import PlatformProcess
from prime_sandboxes import AsyncAPIClient, AsyncSandboxClient, Config

TOGETHER = 8  # pieces of work at once
ROUND_LIMIT = 60.0  # seconds that a round may take: longer is a hang
SETTLING = 15.0  # seconds until a sandbox whose create was given up is gone
LEAST_ROUNDS = 3  # fewer tell nothing about memory
WARM_UP = 0.25  # of the rounds, before memory is compared
MEMORY_GROWTH = 8 * 2**20


class Held(NamedTuple):
    """What this process holds between two rounds."""

    memory: int  # bytes
    descriptors: int
    tasks: int


def main() -> int:
    parser = argparse.ArgumentParser(description="Work through random faults for a time.")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long; 120 by default")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run's faults and work")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
    print(f"seed {seed}", flush=True)
    # So that the platform's process ends with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    tally = Tally()
    with PlatformProcess(["--no-limits"]) as platform:
        held = asyncio.run(rounds(platform, options.seconds, random.Random(seed), tally))
        tally.problems += ledger_problems(platform)
        show(platform, tally, held)
    tally.problems += growth_problems(held)
    for problem in tally.problems:
        print(f"PROBLEM: {problem}")
    print(f"{len(tally.problems)} problems; repeat with --seed {seed}", flush=True)
    return 1 if tally.problems else 0


async def rounds(
    platform: PlatformProcess, seconds: float, chance: random.Random, tally: Tally
) -> list[Held]:
    """Works round by round; returns what was held after each."""
    held: list[Held] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(held) < LEAST_ROUNDS:
        # A round's own, so that what one draws at its pace does not change the next.
        own = random.Random(chance.randrange(2**31))
        await asyncio.to_thread(platform.add_faults, *weather(own))
        try:
            await asyncio.wait_for(one_round(platform, own, tally), ROUND_LIMIT)
        except Exception as error:
            tally.problems.append(f"round {len(held) + 1}: {type(error).__name__}: {error}")
        await asyncio.to_thread(platform.clear_faults)
        held.append(holding())
        if tally.problems:
            break
    return held


async def one_round(platform: PlatformProcess, chance: random.Random, tally: Tally) -> None:
    config = Config(platform.api_key, base_url=platform.url)
    api = AsyncAPIClient(config=config, limits={"sandbox-create": None})
    async with AsyncSandboxClient(client=api) as client:
        ways = chance.choices(WAYS, k=TOGETHER)
        seeds = [chance.randrange(2**31) for _ in ways]
        outage = asyncio.ensure_future(an_outage(platform, chance))
        work = [
            way(client, tally, random.Random(seed)) for way, seed in zip(ways, seeds, strict=True)
        ]
        results = await asyncio.gather(*work, return_exceptions=True)
        await outage
    for way, result in zip(ways, results, strict=True):
        tally.endings[way.__name__] += 1
        if isinstance(result, BaseException):
            tally.problems.append(f"{way.__name__} raised {type(result).__name__}: {result}")


async def an_outage(platform: PlatformProcess, chance: random.Random) -> None:
    """In every third round, the platform is gone for a moment."""
    if chance.random() < 1 / 3:
        await asyncio.sleep(chance.uniform(0, 1.5))
        seconds = chance.uniform(0.1, 1.0)
        await asyncio.to_thread(platform.outage, seconds)
        await asyncio.sleep(seconds + 0.2)


def holding() -> Held:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return Held(
        memory=pages * os.sysconf("SC_PAGE_SIZE"),
        descriptors=len(os.listdir("/proc/self/fd")),
        tasks=len(asyncio.all_tasks()),
    )


def ledger_problems(platform: PlatformProcess) -> list[str]:
    """Compares what the platform made with what is gone; gives late clean-up its time."""
    deadline = time.monotonic() + SETTLING
    while platform.ledger()["sandboxes"]["live"] and time.monotonic() < deadline:
        time.sleep(0.1)
    ledger = platform.ledger()
    counts = ledger["sandboxes"]
    problems = []
    if counts["live"]:
        problems.append(f"{counts['live']} sandboxes are left alive")
    if counts["created"] != counts["deleted"]:
        problems.append(f"{counts['created']} sandboxes were made, {counts['deleted']} deleted")
    keys = ledger["creates_per_key"]
    doubled = [key for key, made in keys.items() if made != 1]
    if doubled or sum(keys.values()) != counts["created"]:
        problems.append(f"{len(doubled)} keys made more than one sandbox")
    return problems


def growth_problems(held: list[Held]) -> list[str]:
    warm = held[int(len(held) * WARM_UP) :]
    if len(warm) < 2:  # a problem has ended the run
        return []
    problems = []
    first, last = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    growth = min(each.memory for each in last) - min(each.memory for each in first)
    if growth > MEMORY_GROWTH:
        problems.append(f"memory grew by {growth / 2**20:.1f} MiB")
    if min(each.descriptors for each in last) > held[0].descriptors:
        problems.append(f"descriptors grew: {[each.descriptors for each in held]}")
    if any(each.tasks != 1 for each in held):
        problems.append(f"tasks were left behind: {[each.tasks for each in held]}")
    return problems


def show(platform: PlatformProcess, tally: Tally, held: list[Held]) -> None:
    ledger = platform.ledger()
    print(f"rounds: {len(held)}, by work: {dict(tally.endings)}")
    print(f"outcomes: {dict(tally.outcomes.most_common())}")
    print(f"sandboxes: {dict(ledger['sandboxes'])}")
    print(f"requests: {dict(Counter(ledger['requests']).most_common())}")
    print(f"answers: {dict(Counter(ledger['responses']).most_common())}")
    memory = [round(each.memory / 2**20, 1) for each in held]
    print(f"memory in MiB, by round: {memory[:: max(1, len(memory) // 20)]}")
    print(f"descriptors, by round: {sorted(Counter(each.descriptors for each in held).items())}")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
