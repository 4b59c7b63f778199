"""Keys of the config file that steer the dispatch and are no part of the run's config.

Follows the page "hosted-training/hosted-rl", "Launching a run".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from prime_train.configs.composition import Composition
from prime_train.configs.sizes import check_volume_name, check_volume_size
from prime_train.configs.values import DISABLED, Value
from prime_train.errors import ConfigIssue

__all__ = ["DISPATCH_KEYS", "DispatchKnobs", "check_knob", "take_knobs"]

KNOBS = ("image_tag", "gpu_type", "volume", "volume_size", "source_ref")
DISPATCH_KEYS = frozenset({*KNOBS, "env_file", "env_files", "type"})
"""Top-level keys that are never sent in the config; `type` has lost its meaning."""

_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_BAD_REF = re.compile(r"\.\.|//|/\.|[/.]\Z|\.lock(/|\Z)|\A(refs|pull)/")


@dataclass(frozen=True)
class DispatchKnobs:
    """How to dispatch; `None` takes the platform's default.

    Attributes:
        image_tag: build of the prime-rl image; ``main`` by default.
        gpu_type: GPU to run on, such as ``H200_141GB``; the platform picks one by default.
        volume: name of the volume to mount at ``/volume``; none by default.
        volume_size: size of that volume when it is made now, such as ``1536Gi``; ``5Ti`` by
            default, at most ``20Ti``.
        source_ref: branch, tag or commit of prime-rl to lay over the image; restricted.
    """

    image_tag: str | None = None
    gpu_type: str | None = None
    volume: str | None = None
    volume_size: str | None = None
    source_ref: str | None = None

    def overridden(self, **given: str | None) -> DispatchKnobs:
        """The same with those knobs that are given.

        Args:
            given: knobs by name; None leaves one as it is.
        """
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each knob that can't be sent, and why."""
        for name in KNOBS:
            value: str | None = getattr(self, name)
            if value is not None and (problem := check_knob(name, value)):
                yield name, problem


def take_knobs(composition: Composition) -> tuple[DispatchKnobs, list[str], list[ConfigIssue]]:
    """Read the knobs and the env files that a config names; both are paths of the caller's.

    Returns:
        The knobs, the files of secrets in the order they are read in, and what is wrong.
    """
    table = composition.table
    issues: list[ConfigIssue] = []
    given: dict[str, str] = {}
    for name in KNOBS:
        value = _unless_disabled(table.get(name))
        if isinstance(value, str):
            given[name] = value
        elif value is not None:
            issues.append(composition.issue((name,), "must be a string"))
    knobs = DispatchKnobs(**given)
    files: list[str] = []
    for key in ("env_file", "env_files"):
        names = _names(_unless_disabled(table.get(key)))
        if names is None:
            issues.append(composition.issue((key,), "must be a path or a list of paths"))
        else:
            files += [str(composition.folder((key,)) / name) for name in names]
    return knobs, files, issues


def _unless_disabled(value: Value) -> Value:
    return None if value == DISABLED else value


def _names(value: Value) -> list[str] | None:
    listed = value if isinstance(value, list) else [] if value is None else [value]
    names = [name for name in listed if isinstance(name, str)]
    return names if len(names) == len(listed) else None


def check_knob(name: str, value: str) -> str | None:
    """Say what is wrong with a knob, if anything is."""
    check: Callable[[str], object] | None = _CHECKS.get(name)
    if not value:
        return "must not be empty"
    try:
        if check is not None:
            check(value)
    except ValueError as error:
        return str(error)
    return None


def _check_source_ref(ref: str) -> None:
    if not _REF.fullmatch(ref) or _BAD_REF.search(ref):
        raise ValueError(
            "a source ref is a branch, tag or commit of at most 200 characters out of letters, "
            "digits and ._/- that git would accept, without refs/ or pull/"
        )


_CHECKS: dict[str, Callable[[str], object]] = {
    "volume": check_volume_name,
    "volume_size": check_volume_size,
    "source_ref": _check_source_ref,
}
