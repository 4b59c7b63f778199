"""What the clients of most packages, and their parts, have in common."""

from __future__ import annotations

from types import TracebackType

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_core.transport import AsyncTransport

__all__ = ["AsyncResource", "AsyncResourceClient"]


class AsyncResource:
    """A part of a client: the connections that it calls over.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._client,)  # its waits belong to this process

    @property
    def client(self) -> AsyncAPIClient:
        """The connections, to share with other clients."""
        return self._client

    @property
    def _transport(self) -> AsyncTransport:
        return self._client._transport


class AsyncResourceClient(AsyncResource):
    """A package's client: its connections, which it shares or has for itself.

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        client: connections to share with other clients, in place of ``api_key``.
        user_agent: ``<package>/<version>``.
    """

    def __init__(self, api_key: str | None, client: AsyncAPIClient | None, user_agent: str) -> None:
        if client is not None and not isinstance(client, AsyncAPIClient):
            raise TypeError(f"client is an AsyncAPIClient, not {type(client).__name__}")
        if client is not None and api_key is not None:
            raise ValueError("pass api_key or client, not both")
        super().__init__(client or AsyncAPIClient(api_key, user_agent=user_agent))
        self._client._share(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self._client)

    def _close_schedules(self) -> None:
        """Ends every wait of this client; one that has waits says which."""

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
        """Waits, at most 15 s, for clean-up under way, then closes the connections.

        Shared connections are closed by the last client that uses them.
        """
        self._close_schedules()
        await self._client._release(self)


def _restore(cls: type[AsyncResourceClient], client: AsyncAPIClient) -> AsyncResourceClient:
    return cls(client=client)  # type: ignore[call-arg]  # as every package's client takes it
