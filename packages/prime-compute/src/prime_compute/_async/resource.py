"""What the parts of the client share."""

from __future__ import annotations

from prime_core._async.api_client import AsyncAPIClient
from prime_core.transport import AsyncTransport

__all__ = ["AsyncComputeResource"]


class AsyncComputeResource:
    """A part of the client: the connections that it calls over.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client!r})"

    @property
    def client(self) -> AsyncAPIClient:
        """The connections, to share with other clients."""
        return self._client

    @property
    def _transport(self) -> AsyncTransport:
        return self._client._transport
