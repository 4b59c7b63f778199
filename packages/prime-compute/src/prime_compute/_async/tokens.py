"""API keys, without their values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from prime_compute.models import ApiToken, ApiTokenList
from prime_compute.operations import DELETE_TOKEN, DISABLE_TOKEN, LIST_TOKENS
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id
from prime_core.offsets import check_window, iterate_offsets

__all__ = ["AsyncTokens"]

PAGE = 100


class AsyncTokens(AsyncResource):
    """Lists and ends API keys. Made by `AsyncComputeClient.tokens`.

    Keys are made in the dashboard or by `prime_core.Login`; their values are shown once.

    Args:
        client: the connections.
    """

    async def list(self, *, offset: int = 0, limit: int = PAGE) -> ApiTokenList:
        """Reads a part of the caller's keys; `iter` reads all of them.

        Args:
            offset: keys to skip, at least 0.
            limit: most keys to return, at least 1.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit)
        query = {"offset": offset, "limit": limit}
        return await self._transport.request(LIST_TOKENS, ApiTokenList, query=query)

    async def iter(self) -> AsyncIterator[ApiToken]:
        """Reads all keys of the caller, part after part."""

        async def fetch(offset: int) -> tuple[Sequence[ApiToken], int]:
            page = await self.list(offset=offset)
            return page.data, page.total_count

        async for token in iterate_offsets(fetch, PAGE, lambda token: token.id):
            yield token

    async def disable(self, token_id: str) -> None:
        """Switches a key off; only the dashboard switches it on again.

        Args:
            token_id: the key; if it is the client's own, its next call is an
                `UnauthorizedError`.

        Raises:
            NotFoundError: the caller has none of this id.
            APIError: any other failure.
        """
        await self._transport.request(
            DISABLE_TOKEN, path={"token_id": check_id("token_id", token_id)}
        )

    async def delete(self, token_id: str) -> None:
        """Removes a key for good.

        Args:
            token_id: the key, as for `disable`.

        Raises:
            NotFoundError: the caller has none of this id.
            APIError: any other failure.
        """
        await self._transport.request(
            DELETE_TOKEN, path={"token_id": check_id("token_id", token_id)}
        )
