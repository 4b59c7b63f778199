"""What requests to models say about who makes them."""

from __future__ import annotations

from prime_local.calls import Call


def team_of(call: Call) -> str | None:
    """Return the team that a call is for, a caller's own; None for the personal account.

    Raises:
        PlatformError: 403, the caller belongs to no such team.
    """
    team_id = call.request.headers.get("X-Prime-Team-ID") or None
    if team_id is not None and has_key(call):
        call.core.account.people.team(team_id)
    return team_id


def has_key(call: Call) -> bool:
    """Say whether a caller is known; the key itself has been checked."""
    return "Authorization" in call.request.headers
