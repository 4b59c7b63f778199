"""A platform for tests of run logging, and a look at what has arrived there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prime_local import FaultRule, PlatformProcess

__all__ = ["Ground", "episode", "ground", "platform_process", "trace"]

Json = dict[str, Any]
TEAM = "cmb4f0k2p0001l8zq7h3n9x5t"


def trace(reward: float | None = 0.5, **fields: object) -> Json:
    """A trace with a question and an answer."""
    return {
        "id": uuid.uuid4().hex,
        "timing": {"start": time.time()},
        "rewards": {} if reward is None else {"correct": {"score": reward}},
        "nodes": [
            {"parent": None, "message": {"role": "user", "content": "9+9?"}, "sampled": False},
            {"parent": 0, "message": {"role": "assistant", "content": "18"}, "sampled": True},
        ],
        **fields,
    }


def episode(*traces: Json, **fields: object) -> Json:
    """An episode of traces."""
    return {"id": uuid.uuid4().hex, "env": {"id": "gsm8k"}, "traces": list(traces), **fields}


@dataclass
class Ground:
    """A platform process, and the folder that the test's programs run in."""

    platform: PlatformProcess
    folder: Path

    def get(self, path: str) -> Json:
        request = urllib.request.Request(
            self.platform.url + path,
            headers={"Authorization": f"Bearer {self.platform.api_key}", "X-Prime-Team-ID": ""},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as answer:
            found: Json = json.load(answer)
            return found

    def evaluation(self, run_id: str) -> Json:
        return self.get(f"/api/v1/evaluations/{run_id}")

    def samples(self, run_id: str) -> list[Json]:
        found: list[Json] = self.get(f"/api/v1/evaluations/{run_id}/samples?limit=1000")["samples"]
        return found

    def training(self, run_id: str) -> Json:
        found: Json = self.get(f"/api/v1/rft/runs/{run_id}")["run"]
        return found

    def metrics(self, run_id: str) -> list[Json]:
        found: list[Json] = self.get(f"/api/v1/rft/runs/{run_id}/metrics")["metrics"]
        return found

    def traces(self, run_id: str) -> list[Json]:
        """The summaries of a run's traces in the personal account."""
        found: list[Json] = []
        cursor = None
        while True:
            query = {"run_id": run_id, "limit": "100", **({"cursor": cursor} if cursor else {})}
            page = self.get(f"/traces/api/v1/traces?{urllib.parse.urlencode(query)}")
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def trace_ids(self, run_id: str) -> set[str]:
        return {each["trace_id"] for each in self.traces(run_id)}

    def requests(self, operation: str) -> int:
        return self.platform.ledger()["requests"].get(operation, 0)

    def refuse(self, operation: str, status: int, code: str | None = None, **rule: Any) -> None:
        """Has an operation answer an error."""
        body = json.dumps({"error": {"code": code, "message": "said by the test"}})
        self.platform.add_faults(FaultRule(operation, status=status, body=body, **rule))

    def unsent(self, run_id: str, name: str) -> list[Json]:
        """The lines of a file of what could not be sent."""
        path = self.folder / "prime-runs" / run_id / name
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def start(self, script: str, *arguments: str) -> subprocess.Popen[str]:
        """Starts a program that logs; its first line of output is the run's id."""
        return self.run("-c", textwrap.dedent(script), *arguments)

    def run(self, *command: str | Path) -> subprocess.Popen[str]:
        """Starts Python."""
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def platform_process() -> Iterator[PlatformProcess]:
    with PlatformProcess() as process:
        yield process


@pytest.fixture
def ground(
    platform_process: PlatformProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ground]:
    """The platform, emptied, as the environment's; the working directory is the test's own."""
    for name in list(os.environ):
        if name.startswith("PRIME_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in platform_process.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    platform_process.reset()
    yield Ground(platform_process, tmp_path)
    platform_process.clear_faults()
    platform_process.check_contract()
