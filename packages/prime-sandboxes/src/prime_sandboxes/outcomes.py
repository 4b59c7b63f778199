"""What came of one item of a fleet's work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from prime_sandboxes.models import Sandbox, SandboxCheckpoint

__all__ = ["Fork", "Outcome", "Timings"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Timings:
    """Seconds that an item's last attempt spent.

    Attributes:
        queued: waiting for a place under the fleet's limit.
        created: creating the sandbox, the rate limit's wait included.
        started: waiting until the sandbox ran commands.
        worked: in the caller's function.
    """

    queued: float = 0.0
    created: float = 0.0
    started: float = 0.0
    worked: float = 0.0


@dataclass
class Outcome(Generic[T, R]):
    """The result of one item, or its failure.

    Attributes:
        item: what was worked on.
        value: what the function returned; None after a failure.
        error: what was raised, or None.
        sandbox_id: the sandbox of the last attempt; None when none was made.
        attempts: how many sandboxes were tried.
        timings: where the last attempt's time went.
    """

    item: T
    value: R | None = None
    error: BaseException | None = None
    sandbox_id: str | None = None
    attempts: int = 1
    timings: Timings = field(default_factory=Timings)

    @property
    def ok(self) -> bool:
        """Whether there was no error."""
        return self.error is None


@dataclass(frozen=True)
class Fork:
    """A sandbox that branched off another, and the checkpoint that it was made from.

    Attributes:
        sandbox: the new sandbox, usually PENDING.
        checkpoint: what it builds on. It is billed until it is deleted, which the platform
            refuses while the sandbox lives.
    """

    sandbox: Sandbox
    checkpoint: SandboxCheckpoint
