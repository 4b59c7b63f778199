"""One row per route of the platform: all that the transport needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Operation", "RateLimit", "RateScope"]


@dataclass(frozen=True)
class RateLimit:
    """So many requests in so many seconds.

    Args:
        requests: how many, at least 1.
        seconds: the length of the window, in seconds, above 0.
    """

    requests: float
    seconds: float

    def __post_init__(self) -> None:
        if self.requests < 1 or self.seconds <= 0:
            raise ValueError(f"a rate limit needs requests >= 1 and seconds > 0, not {self}")


@dataclass(frozen=True)
class RateScope:
    """A rate-limit class: its calls are paced together and wait for a 429 together.

    Args:
        name: how users name it in ``limits=``.
        limit: the documented limit, or None where none is documented.
    """

    name: str
    limit: RateLimit | None = None


UNLIMITED = RateScope("default")


@dataclass(frozen=True)
class Operation:
    """A route, and what may be done with it.

    Attributes:
        id: the contract's ``operationId``.
        method: HTTP method.
        path: route template, such as ``/api/v1/sandbox/{sandbox_id}``.
        safety: ``safe`` (may be sent again), ``keyed`` (may be sent again with the same
            idempotency key) or ``unsafe`` (may be sent again only when it surely did not
            arrive).
        scope: the rate-limit class that it belongs to; calls of a scope wait together.
        team: where the route expects the team, besides the header: ``query``, ``body`` or
            ``none``.
        service: the host that serves it, by the address of `Config` it has: ``control``,
            ``traces`` or ``inference``.
        key_field: body field of the idempotency key, for ``keyed`` rows.
        key_header: header of the idempotency key, for ``keyed`` rows that have it there.
        pool: ``control`` for short calls, ``stream`` for long-lived ones; neither starves
            the other.
        raw: path parameters whose slashes stay as they are, since the route takes several
            segments for them; all else is percent-encoded.
    """

    id: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    safety: Literal["safe", "keyed", "unsafe"]
    scope: RateScope = UNLIMITED
    team: Literal["none", "query", "body"] = "none"
    service: Literal["control", "traces", "inference"] = "control"
    key_field: str | None = None
    key_header: str | None = None
    pool: Literal["control", "stream"] = "control"
    raw: frozenset[str] = frozenset()

    @property
    def repeatable(self) -> bool:
        """Whether a request that may have arrived can be sent again."""
        return self.safety != "unsafe"
