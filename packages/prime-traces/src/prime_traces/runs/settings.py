"""What `init` was given, checked and completed from the environment before anything is sent."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import prime_core.errors
from prime_core.config import Config, stored_setting
from prime_traces.runs.descriptions import (
    ConfigSource,
    EnvironmentRef,
    TrainingSpec,
    read_config,
    read_environments,
)
from prime_traces.runs.errors import ConfigurationError

__all__ = ["Kind", "Mode", "OnError", "RunSettings", "resolve"]

logger = logging.getLogger("prime_traces")

Mode = Literal["online", "disabled"]
Kind = Literal["eval", "train"]
OnError = Literal["warn", "raise"]
Environments = Sequence[str | Mapping[str, str | None] | EnvironmentRef] | str

MODES: Mapping[str, Mode] = {"online": "online", "disabled": "disabled"}
KINDS: Mapping[str, Kind] = {"eval": "eval", "train": "train"}
REACTIONS: Mapping[str, OnError] = {"warn": "warn", "raise": "raise"}

DEFAULT_FINISH_TIMEOUT = 300.0
UNSENT_FOLDER = "prime-runs"

_INTERNAL_ROOTS = ("/api/internal", "/api/internal/rft")

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
T = TypeVar("T")


@dataclass(frozen=True)
class RunSettings:
    """Everything that makes a run; see `init` for what each means.

    Attributes:
        account: key, team and addresses.
        internal: whether the control plane is the root that the platform gives its own workers.
        attached_id: the run that it is attached to; None for one to be made.
        opted_out: whether its samples go to the platform's legacy storage.
        unsent_dir: parent of the folder for what could not be sent.
    """

    account: Config
    internal: bool
    mode: Mode
    kind: Kind
    attached_id: str | None
    name: str | None
    environments: tuple[EnvironmentRef, ...]
    model: str | None
    framework: str | None
    description: str | None
    tags: tuple[str, ...]
    config: Mapping[str, object]
    config_source: ConfigSource | None
    training: TrainingSpec
    opted_out: bool
    on_error: OnError
    finish_timeout: float
    unsent_dir: Path

    @property
    def attached(self) -> bool:
        """Whether somebody else made the run, and answers for its end."""
        return self.attached_id is not None

    def document(self) -> dict[str, object]:
        """The configuration as the platform keeps it, with the file's text under its own name."""
        document = dict(self.config)
        if self.config_source is not None:
            document["config_source"] = dict(vars(self.config_source))
        return document


def resolve(
    *,
    name: str | None,
    environments: Environments | None,
    model: str | None,
    framework: str | None,
    description: str | None,
    tags: Sequence[str] | None,
    config: Mapping[str, object] | str | os.PathLike[str] | None,
    mode: str | None,
    team_id: str | None,
    api_key: str | None,
    base_url: str | None,
    on_error: str,
    finish_timeout: float | None,
    kind: str,
    id: str | None,
    training: TrainingSpec | None,
    traces_opt_out: bool | None,
    unsent_dir: str | os.PathLike[str] | None,
) -> RunSettings:
    """Checks the arguments of `init` and looks up what they leave open.

    Raises:
        ConfigurationError: they can't make a run.
    """
    account, internal = _account(api_key, team_id, base_url)
    if id is not None and (not isinstance(id, str) or not id.strip()):
        raise ConfigurationError(f"id is the id of a run, not {id!r}")
    texts = {
        "name": name,
        "model": model,
        "framework": framework,
        "description": description,
    }
    for argument, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise ConfigurationError(f"{argument} is a text, not a {type(text).__name__}")
    if training is not None and not isinstance(training, TrainingSpec):
        raise ConfigurationError(f"training is a TrainingSpec, not a {type(training).__name__}")
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags or ()):
        raise ConfigurationError("tags is a sequence of texts")
    values, source = read_config(config)
    chosen = _mode(mode, account)
    settings = RunSettings(
        account=account,
        internal=internal,
        mode=chosen,
        kind=_choice("kind", kind, KINDS),
        attached_id=id,
        name=name,
        environments=read_environments(environments),
        model=model,
        framework=framework,
        description=description,
        tags=tuple(tags or ()),
        config=values,
        config_source=source,
        training=training or TrainingSpec(),
        # What does not concern a disabled run is not even read.
        opted_out=chosen == "online" and _opted_out(traces_opt_out),
        on_error=_choice("on_error", on_error, REACTIONS),
        finish_timeout=_seconds(finish_timeout),
        unsent_dir=_path(unsent_dir),
    )
    if training is not None and settings.kind == "eval":
        raise ConfigurationError("training describes a run of kind 'train', not 'eval'")
    if settings.mode == "online":
        _check_online(settings)
    return settings


def _check_online(settings: RunSettings) -> None:
    if not settings.account.api_key:
        raise ConfigurationError(
            "No API key: set PRIME_API_KEY, pass api_key=, or log in with the CLI."
        )
    _check_folder(settings.unsent_dir)
    if settings.kind == "eval":
        if not settings.environments and not settings.attached:
            raise ConfigurationError("environments: an evaluation needs at least one")
        return
    if settings.opted_out:
        raise ConfigurationError(
            "A training run can't be kept out of Prime Traces: its samples would go to the "
            "legacy storage as Parquet files, which this SDK does not write. Drop "
            "traces_opt_out (or PRIME_TRACES_OPT_OUT), or log metrics with mode='disabled'."
        )
    if settings.attached:
        return
    if not settings.model:
        raise ConfigurationError("model: a training run needs it")
    if not settings.account.team_id:
        raise ConfigurationError(
            "A training run belongs to a team: pass team_id= or set PRIME_TEAM_ID."
        )


def _account(api_key: str | None, team_id: str | None, base_url: str | None) -> tuple[Config, bool]:
    try:
        account = Config(api_key, team_id=team_id, base_url=base_url)
        for root in _INTERNAL_ROOTS:
            if account.base_url.endswith(root):
                address = account.base_url.removesuffix(root)
                return Config(api_key, team_id=team_id, base_url=address), True
        return account, False
    except prime_core.errors.ConfigurationError as error:
        raise ConfigurationError(str(error)) from error


def _mode(mode: str | None, account: Config) -> Mode:
    if mode is not None:
        return _choice("mode", mode, MODES)
    if stated := os.environ.get("PRIME_RUNS_MODE", "").strip():
        return _choice("PRIME_RUNS_MODE", stated.lower(), MODES)
    if account.api_key:
        return "online"
    logger.warning(
        "There is no API key, so nothing of this run is sent: set PRIME_API_KEY or log in with "
        "the CLI, or say mode='disabled' to mean it."
    )
    return "disabled"


def _opted_out(argument: bool | None) -> bool:
    if argument is not None:
        if not isinstance(argument, bool):
            raise ConfigurationError(f"traces_opt_out is True, False or None, not {argument!r}")
        return argument
    if stated := os.environ.get("PRIME_TRACES_OPT_OUT", "").strip():
        if stated.lower() not in _WORDS:
            raise ConfigurationError(
                f"PRIME_TRACES_OPT_OUT is one of {', '.join(_WORDS)}, not {stated!r}"
            )
        return _WORDS[stated.lower()]
    stored = stored_setting("traces_opt_out")
    return stored is True or (isinstance(stored, str) and stored.strip().lower() == "true")


def _path(unsent_dir: str | os.PathLike[str] | None) -> Path:
    try:
        return Path(UNSENT_FOLDER if unsent_dir is None else unsent_dir).absolute()
    except TypeError:
        raise ConfigurationError(
            f"unsent_dir is the path of a folder, not a {type(unsent_dir).__name__}"
        ) from None


def _check_folder(folder: Path) -> None:
    """Refuses a folder that can't be made, or written to, before something depends on it."""
    there = next(part for part in (folder, *folder.parents) if os.path.lexists(part))
    if not there.is_dir():
        raise ConfigurationError(f"unsent_dir: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigurationError(f"unsent_dir: {there} can't be written to")


def _choice(name: str, value: str, words: Mapping[str, T]) -> T:
    if value not in words:
        raise ConfigurationError(f"{name} is one of {', '.join(words)}, not {value!r}")
    return words[value]


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return DEFAULT_FINISH_TIMEOUT
    if not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise ConfigurationError(f"finish_timeout is a number of seconds above 0, not {timeout!r}")
    return timeout
