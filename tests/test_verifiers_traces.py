"""What the public verifiers package writes is uploaded, summed up as it counts, and comes back.

It is installed, pinned, into an environment of its own, in which `programs/verifiers_episodes.py`
makes episodes and traces of the package's own classes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from environments import INSTALL_SECONDS, environment_with

from prime_local import PlatformProcess
from prime_traces import LineFormat, TracesClient

HERE = Path(__file__).parent
PRODUCE_SECONDS = 120

pytestmark = [
    pytest.mark.timeout(INSTALL_SECONDS + PRODUCE_SECONDS),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="verifiers needs Python 3.11"),
]


@dataclass(frozen=True)
class Produced:
    """What the package wrote.

    Attributes:
        folder: where its files are.
        held: by trace, what it holds in the package's own words.
    """

    folder: Path
    held: dict[str, dict[str, Any]]

    def lines(self, name: str) -> list[bytes]:
        return (self.folder / name).read_bytes().splitlines()


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> Produced:
    python = environment_with(HERE / "verifiers-requirements.txt", tmp_path_factory, all_named=True)
    folder = tmp_path_factory.mktemp("produced")
    done = subprocess.run(
        [str(python), str(HERE / "programs" / "verifiers_episodes.py"), str(folder)],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=PRODUCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return Produced(folder, json.loads(done.stdout))


@pytest.fixture
def client() -> Iterator[TracesClient]:
    with (
        PlatformProcess(["--isolation", "process"]) as platform,
        TracesClient(api_key=platform.api_key, base_url=platform.env["PRIME_TRACES_URL"]) as client,
    ):
        yield client
        platform.check_contract()


def test_episodes_of_verifiers_come_back_as_they_were_written(
    produced: Produced, client: TracesClient
) -> None:
    (receipt,) = client.upload_file(
        produced.folder / "traces.jsonl",
        line_format=LineFormat.EPISODE,
        context={"source": "verifiers", "run_type": "train"},
    )
    lines = {json.loads(line)["id"]: line for line in produced.lines("traces.jsonl")}
    listed = list(client.iter_episodes(upload_id=receipt.upload_id))
    assert {each.episode_id for each in listed} == lines.keys()
    for episode_id, line in lines.items():
        episode = json.loads(line)
        members = episode["traces"]
        ids = [trace["id"] for trace in members]
        assert client.get_episode_record(episode_id) == {**episode, "traces": ids}
        for trace in members:
            raw = client.get_raw(trace["id"])
            assert raw in line
            assert json.loads(raw) == trace
        detail = client.get_episode(episode_id)
        assert (detail.environment_id, detail.run_id) == (
            "word-ladder",
            None if ids else episode["run"]["id"],
        )
        assert detail.has_error is not episode["ok"]
        assert detail.traces.trace_count == len(ids)


def test_traces_of_verifiers_come_back_byte_for_byte(
    produced: Produced, client: TracesClient
) -> None:
    client.upload_file(produced.folder / "records.jsonl")
    for line in produced.lines("records.jsonl"):
        trace_id = json.loads(line)["id"]
        assert client.get_raw(trace_id) == line
        assert client.get(trace_id).size_bytes == len(line)


def test_summaries_say_what_verifiers_counts(produced: Produced, client: TracesClient) -> None:
    client.upload_file(produced.folder / "records.jsonl")
    client.upload_file(produced.folder / "traces.jsonl", line_format=LineFormat.EPISODE)
    found = {}
    for trace in client.iter():
        found[trace.trace_id] = {
            "reward": trace.score.reward,
            "has_error": trace.execution.has_error,
            "is_truncated": trace.execution.is_truncated,
            "total_tokens": trace.total_tokens,
            "agent": trace.agent_name,
            "nodes": len(list(client.iter_nodes(trace.trace_id, wait_for_index=10))),
            "calls": len(list(client.iter_calls(trace.trace_id, wait_for_index=10))),
        }
    assert found == produced.held
