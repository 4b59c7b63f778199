"""What the parts of the client of images share."""

from __future__ import annotations

from prime_core._async.api_client import AsyncAPIClient

__all__ = ["AsyncImageResource"]


class AsyncImageResource:
    """The connections of a client.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        self._client = client
        self._transport = client._share(self)

    @property
    def client(self) -> AsyncAPIClient:
        """The connections, to share with other clients."""
        return self._client

    def _team(self, team_id: str | None) -> str:
        """The team that is meant; empty for the personal account."""
        return (self._client.config.team_id if team_id is None else team_id) or ""
