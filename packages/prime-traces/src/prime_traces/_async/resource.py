"""What the parts of the client share."""

from __future__ import annotations

from prime_traces._async.api_client import AsyncTracesAPIClient

__all__ = ["AsyncTracesResource"]


class AsyncTracesResource:
    """The routes that a client calls.

    Args:
        api_client: calls them.
    """

    def __init__(self, api_client: AsyncTracesAPIClient) -> None:
        self._api = api_client

    @property
    def api_client(self) -> AsyncTracesAPIClient:
        """The routes of the traces service as they are."""
        return self._api
