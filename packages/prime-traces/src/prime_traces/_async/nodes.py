"""Reading what is in a trace: its messages and its model calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from typing_extensions import Unpack

from prime_core.encoding import Query
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_traces._async.api_client import AsyncTracesAPIClient
from prime_traces._async.resource import AsyncTracesResource
from prime_traces.filters import (
    CallFilters,
    NodeFilters,
    check_wait,
    filter_query,
    path_segment,
    walk_query,
)
from prime_traces.indexing import is_transient, read_indexed
from prime_traces.models import TraceCall, TraceCallPage, TraceNode, TraceNodePage
from prime_traces.operations import LIST_TRACE_CALLS, LIST_TRACE_NODES
from prime_traces.pages import iterate

__all__ = ["AsyncTraceIndex"]


class AsyncTraceIndex(AsyncTracesResource):
    """The part of the client that reads messages and model calls of traces.

    Args:
        api_client: calls the routes.
    """

    def __init__(self, api_client: AsyncTracesAPIClient) -> None:
        super().__init__(api_client)
        self._schedules = PerLoop(
            lambda: PollSchedule(self._read_indexes, transient=is_transient, batch=1)
        )

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)

    async def list_nodes(
        self,
        trace_id: str,
        *,
        role: str | Sequence[str] | None = None,
        sampled: bool | None = None,
        after: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait_for_index: float | None = None,
    ) -> TraceNodePage:
        """Reads a page of a trace's messages; `iter_nodes` reads all of them.

        They come from an index that is built shortly after the upload. Of a very large trace
        it holds the beginning only, which ``partial_index`` says.

        Follows the documented page "api-reference/traces/traces/list-trace-nodes".

        Args:
            trace_id: the trace; an id that holds a slash can't be asked for.
            role: who speaks, such as ``assistant``, or several of them.
            sampled: True for what a model produced, False for what was in the prompt.
            after: the position after which to begin; excludes ``cursor``.
            limit: messages a page, 1 to 100; 20 by default.
            cursor: the ``next_cursor`` of the page before, together with the same filters.
            wait_for_index: seconds to wait while the index is being built; None does not wait.

        Raises:
            TraceNotIndexedError: the index is still being built; `get_raw` works already.
            NotFoundError: there is no trace of this id that the caller can see.
            ValidationRejectedError: the cursor is none of these filters, or the trace was
                uploaded anew: begin without a cursor.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        query = filter_query(role=role, sampled=sampled, after=after, limit=limit, cursor=cursor)
        return await self._nodes(trace_id, query, check_wait(wait_for_index))

    def iter_nodes(
        self,
        trace_id: str,
        *,
        wait_for_index: float | None = None,
        **filters: Unpack[NodeFilters],
    ) -> AsyncIterator[TraceNode]:
        """Reads all messages of a trace that match, page after page.

        Args:
            trace_id: as for `list_nodes`.
            wait_for_index: as for `list_nodes`, for each page.
            filters: those of `list_nodes`. ``limit`` is the size of the pages, 100 by default.

        Raises:
            As `list_nodes`.
        """
        path_segment("trace_id", trace_id)
        seconds = check_wait(wait_for_index)
        return iterate(
            lambda query: self._nodes(trace_id, query, seconds), walk_query(NodeFilters, filters)
        )

    async def _nodes(self, trace_id: str, query: Query, seconds: float | None) -> TraceNodePage:
        path = {"trace_id": path_segment("trace_id", trace_id)}
        return await read_indexed(
            lambda: self._api._request(LIST_TRACE_NODES, TraceNodePage, path=path, query=query),
            trace_id,
            self._schedules.get(),
            seconds,
        )

    async def list_calls(
        self,
        trace_id: str,
        *,
        model: str | Sequence[str] | None = None,
        finish_reason: str | Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait_for_index: float | None = None,
    ) -> TraceCallPage:
        """Reads a page of a trace's model calls; `iter_calls` reads all of them.

        Follows the documented page "api-reference/traces/traces/list-trace-model-calls".

        Args:
            trace_id: as for `list_nodes`.
            model: the model that was called, or several.
            finish_reason: why the model stopped, such as ``length``, or several reasons.
            limit: calls a page, 1 to 100; 20 by default.
            cursor: the ``next_cursor`` of the page before, together with the same filters.
            wait_for_index: as for `list_nodes`.

        Raises:
            As `list_nodes`.
        """
        query = filter_query(model=model, finish_reason=finish_reason, limit=limit, cursor=cursor)
        return await self._calls(trace_id, query, check_wait(wait_for_index))

    def iter_calls(
        self,
        trace_id: str,
        *,
        wait_for_index: float | None = None,
        **filters: Unpack[CallFilters],
    ) -> AsyncIterator[TraceCall]:
        """Reads all model calls of a trace that match, page after page.

        Args:
            trace_id: as for `list_nodes`.
            wait_for_index: as for `list_nodes`, for each page.
            filters: those of `list_calls`. ``limit`` is the size of the pages, 100 by default.

        Raises:
            As `list_nodes`.
        """
        path_segment("trace_id", trace_id)
        seconds = check_wait(wait_for_index)
        return iterate(
            lambda query: self._calls(trace_id, query, seconds), walk_query(CallFilters, filters)
        )

    async def _calls(self, trace_id: str, query: Query, seconds: float | None) -> TraceCallPage:
        path = {"trace_id": path_segment("trace_id", trace_id)}
        return await read_indexed(
            lambda: self._api._request(LIST_TRACE_CALLS, TraceCallPage, path=path, query=query),
            trace_id,
            self._schedules.get(),
            seconds,
        )

    async def _read_indexes(self, trace_ids: list[str]) -> Mapping[str, TraceNodePage | Exception]:
        """The beginning of a trace's index, for the poll schedule."""
        (trace_id,) = trace_ids
        path = {"trace_id": path_segment("trace_id", trace_id)}
        page = await self._api._request(
            LIST_TRACE_NODES, TraceNodePage, path=path, query={"limit": 1}
        )
        return {trace_id: page}
