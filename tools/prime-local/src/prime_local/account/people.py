"""The caller, and the teams that the caller belongs to: made up, but the same for an account."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

KIND = "user"
_OTHERS = (("Bob", "ADMIN"), ("Carol", "MEMBER"), ("Dan", "MEMBER"))
# Somebody else has this one.
TAKEN_SLUG = "prime"


@dataclass(frozen=True)
class Member:
    """Somebody in a team."""

    user_id: str
    name: str
    role: str
    joined_at: datetime

    @property
    def email(self) -> str:
        return f"{self.name.lower()}@example.com"

    def to_wire(self) -> JsonObject:
        """Return the `TeamMember` object of the contract."""
        return {
            "userId": self.user_id,
            "userName": self.name,
            "userEmail": self.email,
            "role": self.role,
            "joinedAt": wire_date(self.joined_at),
        }


@dataclass(frozen=True)
class Team:
    """A team; its first member is the caller."""

    id: str
    name: str
    slug: str
    members: tuple[Member, ...]

    def to_wire(self) -> JsonObject:
        """Return the `TeamSummary` object of the contract."""
        caller = self.members[0]
        return {
            "teamId": self.id,
            "name": self.name,
            "slug": self.slug,
            "role": caller.role,
            "createdAt": wire_date(caller.joined_at),
        }


class People:
    """The caller and the caller's teams.

    Args:
        clock: tells when all began.
        storage: keeps the caller's public name.
        user_id: the caller; all other ids follow from it.
        role: what the caller is in every team.
    """

    def __init__(self, clock: PlatformClock, storage: Storage, user_id: str, role: str) -> None:
        self._storage = storage
        self.user_id = user_id
        self.slug: str | None = None
        self.since = clock.date(-timedelta(days=300).total_seconds())
        self._admin = role.upper() == "ADMIN"
        ada = Member(user_id, "Ada", role.upper(), self.since)
        others = tuple(Member(_id(user_id, name), name, rank, self.since) for name, rank in _OTHERS)
        self.teams = {
            team.id: team
            for team in (
                Team(_id(user_id, "lab"), "Research Lab", "research-lab", (ada, *others)),
                Team(_id(user_id, "duo"), "Duo", "duo", (ada, *others[:1])),
            )
        }

    def take_over(self, row: dict[str, Any] | None) -> None:
        """Remember the caller's public name."""
        self.slug = None if row is None else row["slug"]

    @property
    def lab(self) -> Team:
        """The team that owns the dedicated cluster."""
        return next(iter(self.teams.values()))

    def team(self, team_id: str) -> Team:
        """Return a team of the caller's.

        Raises:
            PlatformError: 403.
        """
        team = self.teams.get(team_id)
        if team is None:
            raise PlatformError(403, "You are not a member of this team")
        return team

    def check_admin(self, team_id: str) -> Team:
        """Return a team in which the caller is an admin.

        Raises:
            PlatformError: 403.
        """
        team = self.team(team_id)
        if not self._admin:
            raise PlatformError(403, "Team admin required")
        return team

    def choose_slug(self, slug: str) -> None:
        """Give the caller a public name.

        Raises:
            PlatformError: 409.
        """
        if self.slug is not None:
            raise PlatformError(409, "The username has been chosen already")
        if slug == TAKEN_SLUG:
            raise PlatformError(409, "This username is taken")
        self.slug = slug
        self._storage.save_object(KIND, self.user_id, {"slug": slug})

    def to_wire(self) -> JsonObject:
        """Return the `User` object of the contract."""
        return {
            "id": self.user_id,
            "role": "USER",
            "createdAt": wire_date(self.since),
            "name": "Ada",
            "slug": self.slug,
            "email": "ada@example.com",
            "image": None,
            "emailVerified": True,
            "hasBetaAccess": False,
            "isBanned": False,
            "skipPrepay": False,
            "blacklist": [],
        }


def _id(user_id: str, what: str) -> str:
    return "c" + hashlib.sha256(f"{user_id} {what}".encode()).hexdigest()[:24]
