"""Finding, reading and deleting traces."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from typing_extensions import Unpack

from prime_core.encoding import Query
from prime_traces._async.resource import AsyncTracesResource
from prime_traces.filters import (
    Moment,
    SortKey,
    TraceFilters,
    filter_query,
    path_segment,
    walk_query,
)
from prime_traces.models import TraceListPage, TraceSummary
from prime_traces.operations import DELETE_RUN_TRACES, DELETE_TRACE, GET_TRACE, LIST_TRACES
from prime_traces.pages import iterate

__all__ = ["AsyncTraceQueries"]


class AsyncTraceQueries(AsyncTracesResource):
    """The part of the client that finds, reads and deletes traces."""

    async def list(
        self,
        *,
        run_id: str | None = None,
        upload_id: str | Sequence[str] | None = None,
        environment_id: str | None = None,
        model_id: str | None = None,
        model_provider: str | None = None,
        task_id: str | None = None,
        reward_min: float | None = None,
        reward_max: float | None = None,
        outcome: str | None = None,
        has_error: bool | None = None,
        is_truncated: bool | None = None,
        created_after: Moment | None = None,
        created_before: Moment | None = None,
        context: Mapping[str, str] | None = None,
        sort: SortKey | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> TraceListPage:
        """Reads a page of the traces; `iter` reads all of them.

        A trace matches when every filter that is given does. An empty list is no filter.

        Follows the documented page "api-reference/traces/traces/list-traces".

        Args:
            run_id: the run.
            upload_id: the upload, or several, by the ``upload_id`` of its receipt.
            environment_id: the environment.
            model_id: the model's name.
            model_provider: who served the model.
            task_id: the task.
            reward_min: the least reward; unscored traces do not match.
            reward_max: the highest reward; unscored traces do not match.
            outcome: why it stopped.
            has_error: whether an error ended it.
            is_truncated: whether a limit cut it short.
            created_after: the earliest time at which it began: an aware datetime, or text such
                as ``2026-08-01T16:00:00Z``. This and the next are the cheapest filters.
            created_before: the latest time at which it began, likewise.
            context: labels of its upload, each by its value.
            sort: what comes first: by default the latest, or the highest ``reward``,
                ``duration_ms`` or ``run_step``.
            limit: traces a page, 1 to 100; 20 by default.
            cursor: the ``next_cursor`` of the page before, together with the same filters.

        Raises:
            ValidationRejectedError: the cursor is none of these filters.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        query = filter_query(
            run_id=run_id,
            upload_id=upload_id,
            environment_id=environment_id,
            model_id=model_id,
            model_provider=model_provider,
            task_id=task_id,
            reward_min=reward_min,
            reward_max=reward_max,
            outcome=outcome,
            has_error=has_error,
            is_truncated=is_truncated,
            created_after=created_after,
            created_before=created_before,
            context=context,
            sort=sort,
            limit=limit,
            cursor=cursor,
        )
        return await self._list(query)

    def iter(self, **filters: Unpack[TraceFilters]) -> AsyncIterator[TraceSummary]:
        """Reads all traces that match, page after page.

        A trace that is uploaded anew meanwhile, with another time, can come twice.

        Args:
            filters: those of `list`. ``limit`` is the size of the pages, 100 by default.

        Raises:
            ValueError: a wrong argument; nothing was sent.
            APIError: a page could not be read.
        """
        return iterate(self._list, walk_query(TraceFilters, filters))

    async def _list(self, query: Query) -> TraceListPage:
        return await self._api._request(LIST_TRACES, TraceListPage, query=query)

    async def get(self, trace_id: str) -> TraceSummary:
        """Reads a trace's summary.

        Follows the documented page "api-reference/traces/traces/get-a-trace".

        Args:
            trace_id: the trace; an id that holds a slash can't be asked for.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            ValueError: an impossible id; nothing was sent.
            APIError: any other failure.
        """
        path = {"trace_id": path_segment("trace_id", trace_id)}
        return await self._api._request(GET_TRACE, TraceSummary, path=path)

    async def get_raw(self, trace_id: str) -> bytes:
        """Reads a trace's document as it was uploaded, credentials replaced.

        It can have 64 MiB; the summary's ``size_bytes`` tells. What breaks off after its first
        bytes is not begun anew.

        Follows the documented page "api-reference/traces/traces/get-a-trace".

        Args:
            trace_id: as for `get`.

        Returns:
            The document's bytes, in which recognised credentials read
            ``<REDACTED BY PRIME TRACES>``.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            ValueError: an impossible id; nothing was sent.
            APIError: any other failure.
        """
        path = {"trace_id": path_segment("trace_id", trace_id)}
        return await self._api._read_document(GET_TRACE, path)

    async def get_record(self, trace_id: str) -> Any:
        """Reads a trace's document, as `get_raw` does, and parses it.

        Args:
            trace_id: as for `get`.

        Returns:
            What `json.loads` makes of the document: a dict, or for an agent's session a list.

        Raises:
            As `get_raw`.
        """
        path = {"trace_id": path_segment("trace_id", trace_id)}
        return await self._api._read_record(GET_TRACE, path)

    async def download_raw(self, trace_id: str, dest: str | os.PathLike[str]) -> int:
        """Writes a trace's document to a file, which takes its place once it is whole.

        Until then it is written beside it, as a hidden file, which is removed when the download
        fails or is cancelled. Missing folders are made. What breaks off after its first bytes
        is not begun anew.

        Follows the documented page "traces/managing-traces".

        Args:
            trace_id: as for `get`.
            dest: where it goes.

        Returns:
            How many bytes were written.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            OSError: the file can't be written.
            ValueError: an impossible id, or a place that is a device's or a pipe's; nothing
                was sent.
            APIError: any other failure.
        """
        path = {"trace_id": path_segment("trace_id", trace_id)}
        return await self._api._save_document(GET_TRACE, path, dest)

    async def delete(self, trace_id: str, *, created_at: Moment | None = None) -> None:
        """Deletes every copy of a trace.

        It is sent once, unless it surely was not processed: the trace could have been uploaded
        anew meanwhile.

        Follows the documented page "traces/managing-traces".

        Args:
            trace_id: as for `get`.
            created_at: when one of its copies began, as a check that the trace is what the
                caller thinks; all copies are deleted.

        Raises:
            NotFoundError: there is none, or none that began then, or it is deleted already.
            AmbiguousDeleteError: no answer says whether it was done: see whether `get` still
                finds it.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure; nothing was deleted.
        """
        path = {"trace_id": path_segment("trace_id", trace_id)}
        await self._api._delete(DELETE_TRACE, path, filter_query(created_at=created_at))

    async def delete_run(self, run_id: str) -> None:
        """Deletes the traces of a run; its episodes stay, with empty totals.

        Stop what uploads to the run first: an upload that finishes meanwhile may be deleted or
        not. It is sent once, unless it surely was not processed.

        Follows the documented page "traces/managing-traces".

        Args:
            run_id: the run.

        Raises:
            NotFoundError: the run has no traces, or no more.
            AmbiguousDeleteError: no answer says whether it was done: see what `list` still
                finds of the run.
            ValueError: an impossible id; nothing was sent.
            APIError: any other failure; nothing was deleted.
        """
        query = filter_query(run_id=run_id)
        if not query.get("run_id"):
            raise ValueError("delete_run needs a run_id")
        await self._api._delete(DELETE_RUN_TRACES, query=query)
