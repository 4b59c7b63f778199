"""The readme's snippets about runs run as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from code_blocks import python_blocks

from prime_core.sync import in_thread
from prime_train import AsyncTrainClient, load_config

if TYPE_CHECKING:
    from conftest import StartPlatform

README = Path(__file__).resolve().parent.parent / "README.md"


def snippet(call: str) -> str:
    [code] = [code for _, code in python_blocks(README.read_text("utf-8")) if call in code]
    return code


@pytest.mark.usefixtures("quick_polls")
async def test_the_snippet_dispatches_a_run_and_waits_for_it(
    start_platform: StartPlatform, capsys: pytest.CaptureFixture[str]
) -> None:
    code = snippet("client.runs.create")
    platform = await start_platform(training_step_time=0.01)
    await in_thread(exec)(code, {})
    ledger = platform.ledger()["runs"]
    assert (ledger["created"], ledger["live"]) == (1, 0)
    assert "5.38 USD/h\nCOMPLETED" in capsys.readouterr().out


@pytest.mark.usefixtures("quick_polls")
async def test_the_snippet_follows_a_run_and_reads_its_metrics(
    start_platform: StartPlatform, capsys: pytest.CaptureFixture[str]
) -> None:
    platform = await start_platform(training_step_time=0.05)
    async with AsyncTrainClient() as client:
        config = {
            "max_steps": 3,
            "model": {"name": "Qwen/Qwen3-0.6B"},
            "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "sort"}}}]}},
            "inference": {},
        }
        made = await client.runs.create(load_config(config))
    await in_thread(exec)(snippet("client.runs.follow_logs").replace("<run-id>", made.run_id), {})
    printed = capsys.readouterr().out
    assert "WARNING Training is simulated" in printed
    assert "SUCCESS Training finished after 3 steps\n1 0." in printed
    assert platform.ledger()["runs"]["live"] == 0
