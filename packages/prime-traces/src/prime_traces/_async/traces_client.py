"""The client of traces, composed of its parts."""

from __future__ import annotations

from types import TracebackType

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_traces._async.api_client import AsyncTracesAPIClient
from prime_traces._async.episodes import AsyncEpisodeQueries
from prime_traces._async.nodes import AsyncTraceIndex
from prime_traces._async.runs import AsyncRunQueries
from prime_traces._async.search import AsyncTraceSearch
from prime_traces._async.traces import AsyncTraceQueries
from prime_traces._async.uploads import AsyncTracesUploads

__all__ = ["AsyncTracesClient"]


class AsyncTracesClient(
    AsyncTracesUploads,
    AsyncTraceQueries,
    AsyncTraceIndex,
    AsyncEpisodeQueries,
    AsyncRunQueries,
    AsyncTraceSearch,
):
    """Uploads traces and episodes, finds them again, and deletes them.

    Use it as a context manager, or close it with `aclose`. It works on any number of event
    loops and in forked children, and pickles as its configuration, without the key.

    Follows the documented page "traces/overview".

    Args:
        api_client: the routes to call, in place of all that follows; it is closed with this
            client.
        api_key: the API key; by default the environment's, then the configuration file's.
        base_url: address of the traces service.
        team_id: the team whose traces they are; "" is the personal account.
        user_agent: ``<name>/<version>`` to go by.
        timeout: seconds for a whole call, retries included; 60 by default.
        client: connections to share with other clients, in place of all of these.
    """

    def __init__(
        self,
        api_client: AsyncTracesAPIClient | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        team_id: str | None = None,
        user_agent: str | None = None,
        timeout: float | None = None,
        client: AsyncAPIClient | None = None,
    ) -> None:
        own = (api_key, base_url, team_id, user_agent, timeout, client)
        if api_client is not None and own != (None,) * len(own):
            raise ValueError("pass api_client or settings of its own, not both")
        if api_client is not None and not isinstance(api_client, AsyncTracesAPIClient):
            raise TypeError(
                f"api_client is an AsyncTracesAPIClient, not {type(api_client).__name__}; "
                "connections to share are passed as client="
            )
        super().__init__(
            api_client
            or AsyncTracesAPIClient(api_key, base_url, team_id, user_agent, timeout, client=client)
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._api,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._api.client!r})"

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
        """Closes the connections; shared ones are closed by the last client that uses them."""
        self._close_schedules()
        await self._api.aclose()
