"""Loads the config of a hosted run and says all that is wrong with it before it is sent."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal, TypeAlias

from prime_train.configs.composition import Composition, ConfigSource, compose
from prime_train.configs.knobs import DISPATCH_KEYS, DispatchKnobs, take_knobs
from prime_train.configs.removed import migrate, removed_shapes
from prime_train.configs.rules.findings import Circumstances, Findings
from prime_train.configs.rules.rl import rl_findings
from prime_train.configs.rules.sft import sft_findings
from prime_train.configs.rules.shared import shared_findings
from prime_train.configs.schema import validate
from prime_train.configs.sections.rl import RLConfig
from prime_train.configs.sections.sft import SFTConfig
from prime_train.configs.values import Table, with_nulls
from prime_train.errors import ConfigIssue, InvalidConfigError

__all__ = ["MAX_GPUS", "Mode", "TrainConfig", "load_config", "raise_errors"]

MAX_GPUS = 64
"""GPUs of one run, on all its pods, unless the account has a lower cap."""

Mode: TypeAlias = Literal["rl", "sft"]


class TrainConfig:
    """The config of a hosted run, composed and typed. `load_config` makes it.

    Args:
        composition: where each value came from.

    Attributes:
        mode: ``rl`` or ``sft``.
        settings: the typed config; what the documentation does not have is in `model_extra`.
        knobs: how the file says to dispatch.
        env_files: files of secrets that the config names, in the order they are read in.
        warnings: unknown keys and words, and keys that are left out.
    """

    mode: Mode
    settings: RLConfig | SFTConfig
    knobs: DispatchKnobs
    env_files: tuple[str, ...]
    warnings: tuple[ConfigIssue, ...]

    def __init__(
        self,
        composition: Composition,
        settings: RLConfig | SFTConfig,
        knobs: DispatchKnobs,
        env_files: Sequence[str],
        warnings: Sequence[ConfigIssue],
    ) -> None:
        self._composition = composition
        self.mode = "rl" if isinstance(settings, RLConfig) else "sft"
        self.settings = settings
        self.knobs = knobs
        self.env_files = tuple(env_files)
        self.warnings = tuple(warnings)

    def __repr__(self) -> str:
        # Without values: variables of processes may be secrets.
        return f"TrainConfig(mode={self.mode!r}, keys={sorted(self._composition.table)})"

    @property
    def name(self) -> str | None:
        """The run's display name."""
        return self.settings.name

    def to_dict(self) -> Table:
        """Give the config as it is sent: all keys but those that steer the dispatch.

        What is switched off is the string ``"None"``.
        """
        return copy.deepcopy(self._composition.table)

    def findings(
        self,
        *,
        volume: str | None = None,
        resume_from: str | None = None,
        gpu_cap: int = MAX_GPUS,
        has_wandb_key: bool = False,
    ) -> tuple[ConfigIssue, ...]:
        """Give all that a dispatch would be refused for, and hints as warnings.

        Args:
            volume: the volume that the run mounts; by default the config's own.
            resume_from: the paused run that it continues; it mounts that one's volume.
            gpu_cap: GPUs that one run may hold: 64, or the account's cap when it is lower.
            has_wandb_key: whether a key for Weights & Biases goes along.
        """
        has_volume = bool(volume or self.knobs.volume or resume_from)
        around = Circumstances(has_volume, gpu_cap, has_wandb_key)
        issues = [
            self._composition.issue(
                finding.path, finding.message, error=finding.refused, near=finding.near
            )
            for finding in self._rules(around)
        ]
        if self.knobs.volume_size is not None and not has_volume:
            message = "needs volume, the name of the volume that it is the size of"
            issues.append(self._composition.issue(("volume_size",), message))
        return tuple(issues)

    def check(
        self,
        *,
        volume: str | None = None,
        resume_from: str | None = None,
        gpu_cap: int = MAX_GPUS,
    ) -> None:
        """Raise what a dispatch would be refused for, as far as it can be known here.

        Args:
            volume: as for `findings`.
            resume_from: as for `findings`.
            gpu_cap: as for `findings`.

        Raises:
            InvalidConfigError: there is something; it lists everything.
        """
        raise_errors(self.findings(volume=volume, resume_from=resume_from, gpu_cap=gpu_cap))

    def _rules(self, around: Circumstances) -> Findings:
        yield from shared_findings(self.settings, around)
        if isinstance(self.settings, RLConfig):
            yield from rl_findings(self.settings, around)
        else:
            yield from sft_findings(self.settings, around)


def load_config(
    *sources: ConfigSource,
    overrides: Sequence[str] = (),
    mode: Mode | None = None,
    strict: bool = False,
) -> TrainConfig:
    """Load a prime-rl config for a hosted run from TOML files, laid over one another.

    Tables merge, lists and other values are replaced, and the string ``"None"`` switches off.
    It reads files, so in a coroutine call it through `asyncio.to_thread`. Follows the pages
    "prime-rl/configuration" and "hosted-training/hosted-rl".

    Args:
        sources: TOML files, or the same as nested mappings; later ones win.
        overrides: ``dotted.key=value`` texts that win over all sources, such as
            ``trainer.optim.lr=1e-6``; a number leads into a list.
        mode: ``rl`` or ``sft``; by default ``sft`` when there is ``data`` and neither
            ``trainer`` nor ``orchestrator``.
        strict: refuse keys and words that the documentation does not have; by default they
            are kept and reported in `TrainConfig.warnings`.

    Returns:
        The config; its types are right, and it has none of the removed shapes. `check` tells
        whether it can be dispatched.

    Raises:
        InvalidConfigError: a source can't be read, or the config is wrong; every issue names
            file, line and key.
    """
    if not sources:
        raise TypeError("load_config takes at least one file or mapping")
    composition = compose(sources, overrides)
    knobs, env_files, issues = take_knobs(composition)
    issues += [composition.issue((name,), message) for name, message in knobs.problems()]
    composition = composition.without(*DISPATCH_KEYS)
    if removed := removed_shapes(composition):
        raise InvalidConfigError(issues + removed)
    composition, migrated = migrate(composition)
    model = RLConfig if (mode or _mode(composition)) == "rl" else SFTConfig
    settings, problems = validate(model, composition, strict=strict)
    issues += [*migrated, *problems]
    raise_errors(issues)
    assert settings is not None  # its errors were among the issues
    return TrainConfig(composition, settings, knobs, env_files, issues)


def _mode(composition: Composition) -> Mode:
    table = {key for key, value in with_nulls(composition.table).items() if value is not None}
    return "sft" if "data" in table and not table & {"trainer", "orchestrator"} else "rl"


def raise_errors(issues: Sequence[ConfigIssue]) -> None:
    """Raise the errors among issues, if there are any."""
    errors = [issue for issue in issues if issue.severity == "error"]
    if errors:
        raise InvalidConfigError(errors)
