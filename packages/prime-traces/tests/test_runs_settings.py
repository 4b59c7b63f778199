"""What `init` makes of its arguments and the environment, before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from environment import clean_environment as clean_environment

import prime_core.errors
import prime_traces.runs as prime_runs
from prime_traces.runs import ConfigurationError, EnvironmentRef, TrainingSpec
from prime_traces.runs.settings import RunSettings, resolve

ARGUMENTS: dict[str, Any] = {
    "name": None,
    "environments": ["gsm8k"],
    "model": "m",
    "framework": None,
    "description": None,
    "tags": None,
    "config": None,
    "mode": None,
    "team_id": None,
    "api_key": "key",
    # Nothing listens there: a request would fail otherwise than these tests expect.
    "base_url": "http://127.0.0.1:9",
    "on_error": "warn",
    "finish_timeout": None,
    "kind": "eval",
    "id": None,
    "training": None,
    "traces_opt_out": None,
    "unsent_dir": None,
}


@pytest.fixture(autouse=True)
def in_a_clean_environment(clean_environment: None) -> None:
    pass


def resolved(**changes: Any) -> RunSettings:
    return resolve(**{**ARGUMENTS, **changes})


def write_config(folder: Path, **values: object) -> None:
    (folder / ".prime").mkdir()
    (folder / ".prime" / "config.json").write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("argument", "variable", "stored", "expected"),
    [
        (None, None, None, False),
        (None, None, True, True),
        (None, None, "True", True),
        (None, None, "yes", False),
        (None, None, False, False),
        (None, "false", True, False),
        (None, "0", True, False),
        (None, "on", None, True),
        (None, "YES", False, True),
        (None, "", True, True),
        (False, "true", True, False),
        (True, "false", False, True),
        (True, "nonsense", None, True),
    ],
)
def test_the_opt_out_is_the_arguments_then_the_environments_then_the_files(
    argument: bool | None,
    variable: str | None,
    stored: object,
    expected: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if stored is not None:
        write_config(tmp_path, traces_opt_out=stored)
    if variable is not None:
        monkeypatch.setenv("PRIME_TRACES_OPT_OUT", variable)
    assert resolved(traces_opt_out=argument).opted_out is expected


def test_another_word_for_the_opt_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_TRACES_OPT_OUT", "maybe")
    with pytest.raises(ConfigurationError, match=r"PRIME_TRACES_OPT_OUT is one of .*'maybe'"):
        prime_runs.init(environments=["gsm8k"], api_key="key")


def test_a_disabled_run_does_not_read_the_opt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_TRACES_OPT_OUT", "maybe")
    assert not resolved(mode="disabled").opted_out


@pytest.mark.parametrize(
    ("argument", "variable", "key", "expected"),
    [
        (None, None, "key", "online"),
        (None, None, None, "disabled"),
        (None, "disabled", "key", "disabled"),
        (None, "ONLINE", "key", "online"),
        ("online", "disabled", "key", "online"),
        ("disabled", "online", "key", "disabled"),
    ],
)
def test_the_mode_is_the_arguments_then_the_environments_then_by_key(
    argument: str | None,
    variable: str | None,
    key: str | None,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if variable is not None:
        monkeypatch.setenv("PRIME_RUNS_MODE", variable)
    assert resolved(mode=argument, api_key=key).mode == expected


def test_a_run_that_is_disabled_for_want_of_a_key_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    resolved(api_key=None)
    assert "no API key, so nothing of this run is sent" in caplog.text
    caplog.clear()
    resolved(api_key=None, mode="disabled")
    assert not caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "offline"}, "mode is one of online, disabled, not 'offline'"),
        ({"kind": "sft"}, "kind is one of eval, train"),
        ({"on_error": "ignore"}, "on_error is one of warn, raise"),
        ({"mode": "online", "api_key": None}, "No API key"),
        ({"environments": []}, "environments: an evaluation needs at least one"),
        ({"environments": None}, "environments: an evaluation needs at least one"),
        ({"environments": [7]}, "environments: a name, a slug"),
        ({"environments": ["a/b/c"]}, "a slug reads owner/name"),
        ({"environments": ["/name"]}, "a slug reads owner/name"),
        ({"environments": [{}]}, "needs a slug, a name or an id"),
        ({"environments": [{"nam": "x"}]}, "'nam' is none of"),
        ({"environments": [{"id": ""}]}, "id is a text"),
        ({"kind": "train", "model": None, "team_id": "t"}, "model: a training run needs it"),
        ({"kind": "train"}, "belongs to a team"),
        ({"kind": "train", "team_id": ""}, "belongs to a team"),
        ({"kind": "train", "team_id": "t", "traces_opt_out": True}, "Parquet"),
        ({"training": TrainingSpec()}, "training describes a run of kind 'train'"),
        ({"finish_timeout": 0}, "finish_timeout is a number of seconds above 0"),
        ({"tags": "one"}, "tags is a sequence"),
        ({"traces_opt_out": "yes"}, "traces_opt_out is True, False or None"),
        ({"config": {"x": float("nan")}}, "config: its values are no JSON"),
        ({"config": 7}, "config is a mapping or the path"),
        ({"config": "no/such/file.toml"}, "can't be read"),
        ({"id": ""}, "id is the id of a run"),
        ({"base_url": "nonsense"}, "base_url"),
        ({"model": 5}, "model is a text, not a int"),
        ({"name": b"x"}, "name is a text"),
        ({"kind": "train", "team_id": "t", "training": {}}, "training is a TrainingSpec"),
        ({"unsent_dir": 7}, "unsent_dir is the path of a folder"),
        ({"unsent_dir": f"{__file__}/below"}, "unsent_dir: .* is no folder"),
    ],
)
def test_what_makes_no_run_is_refused_before_anything_is_sent(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        prime_runs.init(**{**ARGUMENTS, **changes})


@pytest.mark.parametrize("values", [{"max_steps": -1}, {"batch_size": 1.5}, {"seq_len": True}])
def test_figures_of_a_training_are_whole_numbers(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"training: {next(iter(values))} is a whole"):
        TrainingSpec(**values)


def test_errors_are_those_of_every_package() -> None:
    assert issubclass(ConfigurationError, prime_runs.PrimeRunsError)
    assert issubclass(ConfigurationError, prime_core.errors.ConfigurationError)
    assert issubclass(prime_runs.EnvironmentResolutionError, prime_core.errors.PrimeError)


def test_environments_come_in_four_forms() -> None:
    ready = EnvironmentRef(id="c1", version_id="v1")
    found = resolved(environments=["gsm8k", "owner/gsm8k", {"name": "x", "version_id": "v"}, ready])
    assert found.environments == (
        EnvironmentRef("gsm8k"),
        EnvironmentRef(slug="owner/gsm8k"),
        EnvironmentRef("x", version_id="v"),
        ready,
    )
    assert resolved(environments="gsm8k").environments == (EnvironmentRef("gsm8k"),)


@pytest.mark.parametrize(
    ("suffix", "form"), [("toml", "toml"), ("json", "json"), ("YML", "yaml"), ("conf", "text")]
)
def test_a_configuration_file_is_kept_word_for_word(suffix: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.{suffix}"
    path.write_text("# ü\nlr = 1", "utf-8")
    settings = resolved(config=path)
    expected = {"format": form, "text": "# ü\nlr = 1", "filename": path.name}
    assert settings.document() == {"config_source": expected}
    assert settings.config == {}


@pytest.mark.parametrize(
    ("content", "message"), [(b"x" * (256 * 1024 + 1), "larger than 262144"), (b"\xff", "UTF-8")]
)
def test_a_configuration_file_has_its_limits(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        resolved(config=path)


def test_values_of_a_configuration_are_copied() -> None:
    given = {"lr": [1]}
    settings = resolved(config=given)
    given["lr"].append(2)
    assert settings.document() == {"lr": [1]}


@pytest.mark.parametrize("root", ["/api/internal", "/api/internal/rft"])
def test_the_root_of_the_platforms_own_workers_is_recognised(root: str) -> None:
    settings = resolved(base_url=f"https://inside.example{root}")
    assert settings.internal
    assert settings.account.base_url == "https://inside.example"


async def test_a_disabled_run_takes_everything_and_sends_nothing() -> None:
    run = await prime_runs.async_init(mode="disabled", base_url="http://127.0.0.1:9")
    assert run.id.startswith("disabled-")
    assert len(run.id) == len("disabled-") + 16
    async with run:
        await run.log_traces([{"id": "t"}])
        await run.log_metrics({"x": 1}, step=1)
        assert await run.flush()
    assert (run.status, run.finished, run.url, run.errors) == ("completed", True, None, [])
    with pytest.raises(prime_runs.RunFinishedError):
        await run.log_traces([])


def test_a_disabled_run_keeps_the_id_that_it_is_given() -> None:
    with prime_runs.init(mode="disabled", id="mine") as run:
        assert (run.id, run.attached, run.mode) == ("mine", True, "disabled")


def test_a_run_is_made_by_init_alone() -> None:
    with pytest.raises(TypeError, match=r"prime_traces\.runs\.init"):
        prime_runs.Run()
