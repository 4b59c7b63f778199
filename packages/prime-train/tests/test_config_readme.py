"""The readme's snippet about configs runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from code_blocks import python_blocks

from prime_train import CreateRunRequest, RunEstimate

README = Path(__file__).resolve().parent.parent / "README.md"
TOML = """\
[ckpt]
keep_last = 1
[inference]
[trainer.optim]
weight_decy = 0.1
"""


def test_the_snippet_loads_checks_prices_and_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = [
        code for _, code in python_blocks(README.read_text("utf-8")) if "build_request" in code
    ]
    (tmp_path / "rl.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(code, names)
    run, request = names["run"], names["request"]
    assert isinstance(run, RunEstimate)
    assert isinstance(request, CreateRunRequest)
    assert request.config == {
        "max_steps": 20,
        "ckpt": {"keep_last": 1},
        "inference": {},
        "trainer": {"optim": {"weight_decy": 0.1, "lr": 1e-6}},
    }
    assert request.hf_token == "hf_example"
    assert capsys.readouterr().out.splitlines() == [
        "rl.toml:5: trainer.optim.weight_decy: is not a documented key; did you mean weight_decay?",
        "2 GPUs 5.38 USD/h",
        "a volume of 17Gi",
    ]
