"""What a run is described with: its environments, its training and its configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from prime_traces.runs.errors import ConfigurationError

__all__ = [
    "ConfigSource",
    "EnvironmentRef",
    "TrainingSpec",
    "read_config",
    "read_environments",
]

MAX_CONFIG_BYTES = 256 * 1024

_FORMATS: Mapping[str, Literal["toml", "json", "yaml"]] = {
    ".toml": "toml",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
}


@dataclass(frozen=True)
class EnvironmentRef:
    """An environment of the Environments Hub, named in one of three ways.

    Args:
        name: its name; it is made in the Hub when there is none of that name yet.
        id: its id, which is used as it is.
        version_id: the version that is meant, with any of the three.
        slug: ``owner/name``; it must exist.

    Raises:
        ConfigurationError: neither name nor id nor slug is given, or one is no text.
    """

    name: str | None = None
    id: str | None = None
    version_id: str | None = None
    slug: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ConfigurationError(f"environments: {field.name} is a text, not {value!r}")
        if self.id is None and self.slug is None and self.name is None:
            raise ConfigurationError("environments: each needs a slug, a name or an id")
        if self.slug is not None:
            owner, _, name = self.slug.partition("/")
            if not owner or not name or "/" in name:
                raise ConfigurationError(
                    f"environments: a slug reads owner/name, unlike {self.slug!r}"
                )


@dataclass(frozen=True)
class TrainingSpec:
    """The figures of a training run.

    Args:
        max_steps: how many steps it takes; 0 when that is not known.
        batch_size: rollouts in a step.
        rollouts_per_example: rollouts of the same task in a step.
        seq_len: the longest sequence, in tokens.
        wandb_project: Weights & Biases project that it also logs to.
        wandb_entity: owner of that project.
        wandb_run_name: name of the run there.

    Raises:
        ConfigurationError: a figure that is no whole number from 0 on.
    """

    max_steps: int = 0
    batch_size: int | None = None
    rollouts_per_example: int | None = None
    seq_len: int | None = None
    wandb_project: str | None = None
    wandb_entity: str | None = None
    wandb_run_name: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_steps", "batch_size", "rollouts_per_example", "seq_len"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if not whole and not (value is None and name != "max_steps"):
                raise ConfigurationError(
                    f"training: {name} is a whole number from 0 on, not {value!r}"
                )


@dataclass(frozen=True)
class ConfigSource:
    """The configuration file of a run, word for word.

    Attributes:
        format: ``toml``, ``json``, ``yaml`` or ``text``, by the file's suffix.
        text: what it holds, at most 256 KiB.
        filename: its name, without folders.
    """

    format: Literal["toml", "json", "yaml", "text"]
    text: str
    filename: str


def read_config(
    config: Mapping[str, object] | str | os.PathLike[str] | None,
) -> tuple[dict[str, object], ConfigSource | None]:
    """Takes a configuration as values, or as a file that is kept word for word.

    Raises:
        ConfigurationError: a file that can't be read, is too large or no UTF-8 text; values
            that are no JSON.
    """
    if config is None:
        return {}, None
    if isinstance(config, Mapping):
        try:
            # A copy: what the program does to its own afterwards is not the run's.
            copied: dict[str, object] = json.loads(json.dumps(dict(config), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"config: its values are no JSON: {error}") from error
        return copied, None
    try:
        path = Path(config)
    except TypeError:
        raise ConfigurationError(
            f"config is a mapping or the path of a file, not a {type(config).__name__}"
        ) from None
    return {}, _read_file(path)


def _read_file(path: Path) -> ConfigSource:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"config: {path} can't be read: {error.strerror}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigurationError(f"config: {path} is larger than {MAX_CONFIG_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"config: {path} is no UTF-8 text") from error
    return ConfigSource(_FORMATS.get(path.suffix.lower(), "text"), text, path.name)


def read_environments(
    environments: Sequence[str | Mapping[str, str | None] | EnvironmentRef] | str | None,
) -> tuple[EnvironmentRef, ...]:
    """Takes environments in each of their forms: a text with a slash is a slug, else a name.

    Raises:
        ConfigurationError: something that names no environment.
    """
    if environments is None:
        return ()
    given = [environments] if isinstance(environments, str) else list(environments)
    return tuple(map(_environment, given))


def _environment(given: object) -> EnvironmentRef:
    if isinstance(given, EnvironmentRef):
        return given
    if isinstance(given, str):
        return EnvironmentRef(slug=given) if "/" in given else EnvironmentRef(given)
    if isinstance(given, Mapping):
        known = {field.name for field in fields(EnvironmentRef)}
        if unknown := sorted(set(given) - known, key=str):
            raise ConfigurationError(f"environments: {unknown[0]!r} is none of {sorted(known)}")
        return EnvironmentRef(**given)
    raise ConfigurationError(
        f"environments: a name, a slug, a mapping or an EnvironmentRef, not {given!r}"
    )
