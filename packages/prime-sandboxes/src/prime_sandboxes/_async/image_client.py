"""The client of images, composed of its parts."""

from __future__ import annotations

from types import TracebackType

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_sandboxes._async.image_builds import AsyncImageBuilds
from prime_sandboxes._async.image_catalog import AsyncImageCatalog
from prime_sandboxes._async.sandbox_client import USER_AGENT

__all__ = ["AsyncImageClient"]


class AsyncImageClient(AsyncImageCatalog, AsyncImageBuilds):
    """Builds images, finds, changes and deletes them.

    Use it as a context manager, or close it with `aclose`. It works on any number of event
    loops and in forked children, and pickles as its configuration, without the key.

    Follows the documented page "sandboxes/images".

    Args:
        api_client: connections to share with other clients; without them it makes its own.
    """

    def __init__(self, api_client: AsyncAPIClient | None = None) -> None:
        if api_client is not None and not isinstance(api_client, AsyncAPIClient):
            raise TypeError(f"api_client is an AsyncAPIClient, not {type(api_client).__name__}")
        super().__init__(api_client or AsyncAPIClient(user_agent=USER_AGENT))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.client,)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends waits, then closes the connections.

        Shared connections are closed by the last client that uses them.
        """
        self._close_schedules()
        await self.client._release(self)

    def __repr__(self) -> str:
        return f"AsyncImageClient({self.client!r})"
