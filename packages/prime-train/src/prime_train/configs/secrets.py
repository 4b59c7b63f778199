"""Secrets of a run: environment variables of all its pods.

Follows the page "hosted-training/hosted-rl", "Launching a run".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from prime_core.secret import Secret
from prime_train.configs.env_files import EnvProblem, expanded_argument, read_env_file
from prime_train.errors import ConfigIssue, InvalidConfigError

__all__ = ["RunSecrets", "given_secrets", "read_secrets"]

MAX_ENTRIES = 32
MAX_NAME = 128
MAX_VALUE = 32 * 1024
MAX_TOTAL = 256 * 1024
PLACED = {"WANDB_API_KEY": "wandb_api_key", "HF_TOKEN": "hf_token"}
RESERVED = frozenset({"PRIME_API_KEY", *PLACED})

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class RunSecrets:
    """The secrets of a run; neither repr nor pickle shows or holds one.

    Attributes:
        wandb_api_key: key for Weights & Biases; without one the run logs nothing there.
        hf_token: token for Hugging Face.
        values: further variables of all pods; at most 32, names of at most 128 characters,
            values of at most 32 KiB, 256 KiB in all.
    """

    wandb_api_key: Secret | None = None
    hf_token: Secret | None = None
    values: Mapping[str, Secret] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise TypeError(f"values is a mapping, not a {type(self.values).__name__}")
        placed = {name: getattr(self, name) for name in PLACED.values()}
        for name, value in (*placed.items(), *self.values.items()):
            if not isinstance(value, Secret) and not (value is None and name in placed):
                raise TypeError(f"{name}: wrap the text as Secret(text), or use read_secrets")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each name that can't be sent, and why."""
        # A value of the environment need not be UTF-8.
        encoded = {
            name: value.reveal().encode("utf-8", "surrogatepass")
            for name, value in self.values.items()
        }
        sizes = {name: len(value) for name, value in encoded.items()}
        for name, size in sizes.items():
            if name in RESERVED:
                place = PLACED.get(name)
                advice = f"pass it as {place}" if place else "the run has a key of its own"
                yield name, f"is a reserved name; {advice}"
            elif not _NAME.fullmatch(name):
                yield name, "is not the name of an environment variable"
            elif len(name) > MAX_NAME:
                yield name[:MAX_NAME], f"is longer than {MAX_NAME} characters"
            if size > MAX_VALUE:
                yield name, f"has a value of {size:,} bytes; the most is {MAX_VALUE:,}"
        if len(sizes) > MAX_ENTRIES:
            yield "", f"there are {len(sizes)} secrets; the most is {MAX_ENTRIES}"
        if (total := sum(sizes.values())) > MAX_TOTAL:
            yield "", f"the secrets are {total:,} bytes in all; the most is {MAX_TOTAL:,}"


def given_secrets(secrets: RunSecrets | None) -> RunSecrets:
    """What a caller has passed as secrets.

    Raises:
        TypeError: it is something else.
    """
    if secrets is None:
        return RunSecrets()
    if not isinstance(secrets, RunSecrets):
        raise TypeError(
            f"secrets are RunSecrets, as read_secrets returns them, not a {type(secrets).__name__}"
        )
    return secrets


def read_secrets(
    *arguments: str,
    env_files: Iterable[str | os.PathLike[str]] = (),
    environ: Mapping[str, str] | None = None,
) -> RunSecrets:
    """Collect secrets as `prime train` does: files first, then arguments; later ones win.

    Args:
        arguments: ``KEY`` takes the value of that environment variable, ``KEY=VALUE`` gives it,
            anything else is the path of a file of such lines. ``${VAR}`` in a value is replaced,
            unless the value stands in single quotes.
        env_files: files of ``KEY=VALUE`` lines, such as `TrainConfig.env_files`.
        environ: where variables are looked up; the environment of the process by default.

    Returns:
        The secrets, those with a place of their own in it.

    Raises:
        InvalidConfigError: a variable is not set, a file can't be read or is malformed, or a
            name, a size or the number of secrets is not within the limits.
    """
    known = dict(os.environ if environ is None else environ)
    values: dict[str, str] = {}
    issues: list[ConfigIssue] = []
    readers: list[Callable[[Mapping[str, str]], dict[str, str]]] = [
        *(partial(read_env_file, Path(file)) for file in env_files),
        *(partial(_read_argument, number, text) for number, text in enumerate(arguments, 1)),
    ]
    for read in readers:
        try:
            # What was read before may be referred to as well.
            values.update(read({**known, **values}))
        except EnvProblem as problem:
            issues.append(problem.issue)
    placed = {
        attribute: Secret(values.pop(name))
        for name, attribute in PLACED.items()
        if values.get(name)
    }
    secrets = RunSecrets(
        placed.get("wandb_api_key"),
        placed.get("hf_token"),
        {name: Secret(value) for name, value in values.items() if name not in PLACED},
    )
    issues += [ConfigIssue(message, name) for name, message in secrets.problems()]
    if issues:
        raise InvalidConfigError(issues)
    return secrets


def _read_argument(number: int, text: str, scope: Mapping[str, str]) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if equals and _NAME.fullmatch(name):
        return {name: expanded_argument(name, value, scope)}
    if not _NAME.fullmatch(text):
        if not os.path.isfile(text):
            # Not quoted: it may be a value whose name was forgotten.
            raise EnvProblem(f"argument {number} is neither KEY nor KEY=VALUE nor a file")
        return read_env_file(Path(text), scope)
    if text not in scope:
        raise EnvProblem("is not set in the environment; pass KEY=VALUE", text)
    return {text: scope[text]}
