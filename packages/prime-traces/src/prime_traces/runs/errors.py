"""Errors of run logging that are not the platform's."""

from __future__ import annotations

import prime_core.errors
from prime_core.errors import PrimeError

__all__ = [
    "ConfigurationError",
    "EnvironmentResolutionError",
    "PrimeRunsError",
    "RecordsUnsentError",
    "RunFinishedError",
]


class PrimeRunsError(PrimeError):
    """Base class of the errors that run logging raises itself."""


class ConfigurationError(PrimeRunsError, prime_core.errors.ConfigurationError):
    """What `init` was given, or finds in the environment, can't make a run; nothing was sent."""


class EnvironmentResolutionError(PrimeRunsError):
    """An environment of the run is not in the Environments Hub, or can't be read there."""


class RecordsUnsentError(PrimeRunsError):
    """What was logged could not be sent in time; `unsent_dir` of the run has it."""


class RunFinishedError(PrimeRunsError):
    """Something was logged to a run that has been finished."""
