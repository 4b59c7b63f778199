"""The caller: who it is, and what it may do."""

from __future__ import annotations

from prime_compute.models import SlugRequest, User, Whoami
from prime_compute.models.account import UserAnswer, WhoamiAnswer
from prime_compute.operations import GET_WHOAMI, SET_USER_SLUG
from prime_core._async.resource import AsyncResource
from prime_core.models import encode_request

__all__ = ["AsyncAccount"]


class AsyncAccount(AsyncResource):
    """Reads and names the caller's account. Made by `AsyncComputeClient.account`.

    Follows the documented page "api-reference/user/get-whoami".

    Args:
        client: the connections.
    """

    async def whoami(self, *, team_id: str | None = None) -> Whoami:
        """Reads who the caller is, and what the API key may do; see `effective_limits`.

        Args:
            team_id: the team whose limits are told, by default the configured one; "" is the
                personal account.

        Raises:
            ForbiddenError: the caller does not belong to the team.
            APIError: any other failure.
        """
        answer = await self._transport.request(GET_WHOAMI, WhoamiAnswer, team=team_id)
        return answer.data

    async def set_slug(self, slug: str) -> User:
        """Chooses the public user name, once and for all.

        It is sent once; after an error without an answer, see `whoami` first.

        Args:
            slug: 3 to 30 of a-z, 0-9 and the dash.

        Raises:
            ValueError: an impossible name; nothing was sent.
            ConflictError: somebody has it, or the caller has one already.
            APIError: any other failure.
        """
        body = encode_request(SlugRequest(slug=slug))
        return (await self._transport.request(SET_USER_SLUG, UserAnswer, body=body)).data
