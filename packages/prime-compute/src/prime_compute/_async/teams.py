"""Teams, and who belongs to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from prime_compute.models import Team, TeamList, TeamMember, TeamMemberList
from prime_compute.operations import LIST_MY_TEAMS, LIST_TEAM_MEMBERS
from prime_core._async.resource import AsyncResource
from prime_core.arguments import team_of
from prime_core.offsets import check_window, iterate_offsets

__all__ = ["AsyncTeams"]

PAGE = 100


class AsyncTeams(AsyncResource):
    """Reads the caller's teams and their members. Made by `AsyncComputeClient.teams`.

    Follows the documented page "api-reference/teams".

    Args:
        client: the connections.
    """

    async def list(self, *, offset: int = 0, limit: int = PAGE) -> TeamList:
        """Reads a part of the caller's teams; `iter` reads all of them.

        Args:
            offset: teams to skip, at least 0.
            limit: most teams to return, at least 1.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit)
        query = {"offset": offset, "limit": limit}
        return await self._transport.request(LIST_MY_TEAMS, TeamList, query=query)

    async def iter(self) -> AsyncIterator[Team]:
        """Reads all teams of the caller, part after part."""

        async def fetch(offset: int) -> tuple[Sequence[Team], int]:
            page = await self.list(offset=offset)
            return page.data, page.total_count

        async for team in iterate_offsets(fetch, PAGE, lambda team: team.team_id):
            yield team

    async def list_members(
        self, team_id: str | None = None, *, offset: int = 0, limit: int = PAGE
    ) -> TeamMemberList:
        """Reads a part of a team's members; `iter_members` reads all of them.

        Args:
            team_id: the team; the configured one by default.
            offset: members to skip, at least 0.
            limit: most members to return, at least 1.

        Raises:
            ConfigurationError: no team is named; nothing was sent.
            ValueError: a number out of its range; nothing was sent.
            ForbiddenError: the caller does not belong to the team; or `NotFoundError`.
            APIError: any other failure.
        """
        check_window(offset, limit)
        path = {"team_id": team_of(self._client.config, team_id)}
        query = {"offset": offset, "limit": limit}
        return await self._transport.request(
            LIST_TEAM_MEMBERS, TeamMemberList, path=path, query=query
        )

    async def iter_members(self, team_id: str | None = None) -> AsyncIterator[TeamMember]:
        """Reads all members of a team, part after part.

        Args:
            team_id: the team; the configured one by default.
        """

        async def fetch(offset: int) -> tuple[Sequence[TeamMember], int]:
            page = await self.list_members(team_id, offset=offset)
            return page.data, page.total_count

        async for member in iterate_offsets(fetch, PAGE, lambda member: member.user_id):
            yield member
