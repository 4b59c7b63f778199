"""The bench runs, and compares what can be compared."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.reports import Row, as_table
from bench.workers import TOOLS, Worker

ROWS = [
    *(
        f"CPU of creates, {how}, {client} client"
        for how in (
            "1 in flight",
            "64 in flight",
            "512 in flight",
            "2,000 in flight",
            "64 in flight, TLS",
        )
        for client in ("fresh", "warm")
    ),
    *("burst of 100: wall", "burst of 1,000: wall", "burst of 2,000: wall"),
    *("burst of 2,000: wall against 1,000", "sync get: wall", "throttled creates: wall"),
    *("waiters: loop lag, p99", "waiters: loop lag, max"),
    "fleet: requests a sandbox, without commands",
    *("fleet: memory a sandbox while waiting", "fleet: wall"),
    *("jobs: status calls a job", "jobs: loop lag, p99"),
    *(f"traces, {how}: {what}" for how in ("plain", "fast") for what in ("CPU", "memory growth")),
    "traces, fast: CPU, vendor",
    *("streams: CPU a chunk, a chunk a packet", "streams: CPU a chunk, in bulk"),
    *("volume, put: memory growth", "volume, get: memory growth"),
    *("import prime_compute", "import prime_core", "import prime_inference"),
    *("import prime_sandboxes", "import prime_traces", "import prime_train"),
    *("from prime_sandboxes import AsyncSandboxClient", "import pydantic"),
]


@pytest.mark.timeout(300)
def test_the_short_form_measures_every_row(tmp_path: Path) -> None:
    output = tmp_path / "bench.json"
    done = subprocess.run(
        [sys.executable, str(TOOLS / "bench"), "--short", "--output", str(output)],
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report["short"] is True
    assert [row["name"] for row in report["rows"]] == ROWS
    assert all(row["value"] > 0 for row in report["rows"])
    rows = {row["name"]: row for row in report["rows"]}
    assert rows["burst of 1,000: wall"]["details"]["connections"] == 128
    fleet = rows["fleet: requests a sandbox, without commands"]["details"]
    assert (fleet["failed"], fleet["left alive"]) == (0, 0)
    jobs = rows["jobs: status calls a job"]["details"]
    assert (jobs["failed"], jobs["commands"]) == (0, 2 * jobs["jobs"])
    lines = done.stdout.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {name}" for name in ROWS]


def test_both_sides_send_the_same_bytes() -> None:
    sent = {}
    with Worker("stub", "0", core=None) as stub:
        url = stub.ask()["url"]
        for side in ("ours", "raw"):
            with Worker("creating", side, url, core=None) as worker:
                worker.ask(count=1, in_flight=1, connections=1, runs=1)
            request = stub.ask()["last"]
            # The idempotency key, and the request's id with its counter.
            request = re.sub(r"[0-9a-f]{32}", "KEY", request)
            head, _, body = re.sub(r"[0-9a-f]{20}-[0-9a-f]+", "ID", request).partition("\r\n\r\n")
            sent[side] = sorted(head.split("\r\n")), json.loads(body)
    assert sent["ours"] == sent["raw"]


def test_a_worker_that_ends_early_is_an_error() -> None:
    with (
        pytest.raises(RuntimeError, match="creating"),
        Worker("creating", "ours", "no URL", core=None) as worker,
    ):
        worker.ask(count=1, in_flight=1, connections=1, runs=1)


def test_the_table_says_whether_a_target_is_met() -> None:
    table = as_table(
        [Row("fast", 1.0, "s", 2.0), Row("slow", 1234.5, "s", 2.0), Row("free", 0.5, "s")]
    )
    assert table.splitlines()[2:] == [
        "| fast | 1 s | <= 2 | yes |  |",
        "| slow | 1,234 s | <= 2 | NO |  |",
        "| free | 0.5 s |  |  |  |",
    ]
