"""The readme's snippet about runs runs as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from code_blocks import python_blocks

from prime_core.sync import in_thread

if TYPE_CHECKING:
    from conftest import StartPlatform

README = Path(__file__).resolve().parent.parent / "README.md"


@pytest.mark.usefixtures("quick_polls")
async def test_the_snippet_dispatches_a_run_and_waits_for_it(
    start_platform: StartPlatform, capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = [code for _, code in python_blocks(README.read_text("utf-8")) if "client.runs" in code]
    platform = await start_platform(training_step_time=0.01)
    await in_thread(exec)(code, {})
    ledger = platform.ledger()["runs"]
    assert (ledger["created"], ledger["live"]) == (1, 0)
    assert "5.38 USD/h\nCOMPLETED" in capsys.readouterr().out
