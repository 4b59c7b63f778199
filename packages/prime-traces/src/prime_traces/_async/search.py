"""Searching the messages of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator

from typing_extensions import Unpack

from prime_core.encoding import Query
from prime_traces._async.resource import AsyncTracesResource
from prime_traces.filters import (
    SearchFilters,
    check_query,
    check_text,
    filter_query,
    path_segment,
    walk_query,
)
from prime_traces.models import SearchField, TraceSearchMatch, TraceSearchPage
from prime_traces.operations import SEARCH_RUN
from prime_traces.pages import iterate

__all__ = ["AsyncTraceSearch"]


class AsyncTraceSearch(AsyncTracesResource):
    """The part of the client that searches."""

    async def search(
        self,
        query: str,
        *,
        run_id: str,
        field: SearchField = "content",
        role: str | None = None,
        run_step: int | None = None,
        has_error: bool | None = None,
        reward_min: float | None = None,
        reward_max: float | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> TraceSearchPage:
        """Looks for a text in the messages of a run; `iter_search` reads all matches.

        The text is taken as it stands, its case too. Only what is indexed is searched: the
        first page's ``coverage`` names what was not. A page can be empty without being the
        last.

        Follows the documented page "api-reference/traces/runs/search-a-run".

        Args:
            query: the text, 3 to 256 characters, not all of them blank.
            run_id: the run.
            field: what of a message is searched: ``content``, ``reasoning_content`` or
                ``tool_calls``.
            role: who speaks, such as ``tool``.
            run_step: the trace's training step, from 0.
            has_error: whether an error ended the trace.
            reward_min: the trace's least reward; unscored traces do not match.
            reward_max: the trace's highest reward; unscored traces do not match.
            limit: matches a page, 1 to 100.
            cursor: the ``next_cursor`` of the page before, together with the same filters.

        Returns:
            The first match in each message.

        Raises:
            NotFoundError: the run has no traces that the caller can see.
            ValidationRejectedError: the cursor is none of these filters; or, with the code
                ``search_limit_exceeded``, the search reads too much: narrow it.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        filters = filter_query(
            field=field,
            role=None if role is None else check_text("role", role),
            run_step=run_step,
            has_error=has_error,
            reward_min=reward_min,
            reward_max=reward_max,
            limit=limit,
            cursor=cursor,
        )
        return await self._search(run_id, {"query": check_query(query), **filters})

    def iter_search(
        self, query: str, *, run_id: str, **filters: Unpack[SearchFilters]
    ) -> AsyncIterator[TraceSearchMatch]:
        """Looks for a text in the messages of a run, page after page.

        What was not indexed yet is passed over; `search` tells, on its first page.

        Args:
            query: as for `search`.
            run_id: the run.
            filters: those of `search`. ``limit`` is the size of the pages, 100 by default.

        Raises:
            As `search`.
        """
        path_segment("run_id", run_id)
        narrowed = {"query": check_query(query), **walk_query(SearchFilters, filters)}
        return iterate(lambda page: self._search(run_id, page), narrowed)

    async def _search(self, run_id: str, query: Query) -> TraceSearchPage:
        path = {"run_id": path_segment("run_id", run_id)}
        return await self._api._request(SEARCH_RUN, TraceSearchPage, path=path, query=query)
