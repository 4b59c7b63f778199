"""One row per route of the platform: all that the transport needs to know of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Operation", "RateLimit", "RateScope", "unnamed_operation"]

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Safety: TypeAlias = Literal["safe", "keyed", "unsafe", "permitted"]
Service: TypeAlias = Literal["control", "traces", "inference"]

# Anything else could end the request line, and with it the route, early.
_ENDPOINT = re.compile(r"/[\x21\x22\x24-\x7e]*")


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
            idempotency key), ``unsafe`` (may be sent again only when it surely did not
            arrive) or ``permitted`` (unsafe, but its caller would rather have it done twice than
            not at all: three times at most, however the host fares).
        scope: the rate-limit class that it belongs to; calls of a scope wait together.
        team: where the route expects the team, besides the header: ``query``, ``body`` or
            ``none``.
        team_name: what it is called there.
        service: the host that serves it, by the address of `Config` it has: ``control``,
            ``traces`` or ``inference``.
        keyless: whether it can be called without an API key.
        key_field: body field of the idempotency key, for ``keyed`` rows.
        key_header: header of the idempotency key, for ``keyed`` rows that have it there.
        refusal_codes: the codes by which a 503 says that the request was not processed, for
            rows where a Retry-After alone does not say so.
        pool: ``control`` for short calls, ``stream`` for long-lived ones; neither starves
            the other.
        raw: path parameters whose slashes stay as they are, since the route takes several
            segments for them; all else is percent-encoded.
        named: whether it is a row of a package, of which there are so many and no more.
    """

    id: str
    method: Method
    path: str
    safety: Safety
    scope: RateScope = UNLIMITED
    team: Literal["none", "query", "body"] = "none"
    team_name: Literal["team_id", "teamId", "team.teamId"] = "team_id"
    service: Service = "control"
    keyless: bool = False
    key_field: str | None = None
    key_header: str | None = None
    refusal_codes: frozenset[str] = frozenset()
    pool: Literal["control", "stream"] = "control"
    raw: frozenset[str] = frozenset()
    named: bool = True

    @property
    def repeatable(self) -> bool:
        """Whether a request that may have arrived can be sent again."""
        return self.safety != "unsafe"


def unnamed_operation(
    method: Method, endpoint: str, safety: Safety, service: Service = "control"
) -> Operation:
    """The row of a route that has no method of its own.

    Args:
        method: HTTP method.
        endpoint: the path below ``/api/v1``, percent-encoded.
        safety: as for `Operation`.
        service: as for `Operation`.

    Raises:
        ValueError: the endpoint is no encoded path.
    """
    if not isinstance(endpoint, str) or not _ENDPOINT.fullmatch(endpoint):
        raise ValueError(
            f"endpoint is a percent-encoded path that starts with a slash, unlike {endpoint!r}"
        )
    return Operation(
        id=f"{method} {endpoint}",
        method=method,
        path=f"/api/v1{endpoint}",
        safety=safety,
        service=service,
        named=False,
    )
