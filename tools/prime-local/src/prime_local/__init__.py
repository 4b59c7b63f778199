"""A local stand-in for the Prime Intellect platform, to run and test the SDK against."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_local.assumptions import Assumptions
    from prime_local.billing.runs import RunTokens
    from prime_local.errors import ContractViolation
    from prime_local.faults import FaultRule
    from prime_local.platform import LocalPlatform
    from prime_local.sandboxes.isolation.base import IsolationError
    from prime_local.subprocess_server import PlatformProcess

__version__ = "0.1.0"
__all__ = [
    "Assumptions",
    "ContractViolation",
    "FaultRule",
    "IsolationError",
    "LocalPlatform",
    "PlatformProcess",
    "RunTokens",
    "__version__",
]

_HOME = {
    "Assumptions": "prime_local.assumptions",
    "ContractViolation": "prime_local.errors",
    "FaultRule": "prime_local.faults",
    "IsolationError": "prime_local.sandboxes.isolation.base",
    "LocalPlatform": "prime_local.platform",
    "PlatformProcess": "prime_local.subprocess_server",
    "RunTokens": "prime_local.billing.runs",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
