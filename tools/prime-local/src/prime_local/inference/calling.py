"""What requests to models say about who makes them."""

from __future__ import annotations

from prime_local.calls import Call


def team_of(call: Call) -> str | None:
    """Return the team that a call is for; None for the personal account."""
    return call.request.headers.get("X-Prime-Team-ID") or None


def has_key(call: Call) -> bool:
    """Say whether a caller is known; the key itself has been checked."""
    return "Authorization" in call.request.headers
