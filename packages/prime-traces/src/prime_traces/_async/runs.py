"""Finding and reading runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from typing_extensions import Unpack

from prime_core.encoding import Query
from prime_traces._async.resource import AsyncTracesResource
from prime_traces.filters import Moment, RunFilters, filter_query, path_segment, walk_query
from prime_traces.models import RunListPage, RunStepList, RunSummary, RunType
from prime_traces.operations import GET_RUN, LIST_RUN_STEPS, LIST_RUNS
from prime_traces.pages import iterate

__all__ = ["AsyncRunQueries"]


class AsyncRunQueries(AsyncTracesResource):
    """The part of the client that finds and reads runs."""

    async def list_runs(
        self,
        *,
        run_type: RunType | Sequence[RunType] | None = None,
        created_by: str | Sequence[str] | None = None,
        created_after: Moment | None = None,
        created_before: Moment | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> RunListPage:
        """Reads a page of the runs, with their totals; `iter_runs` reads all of them.

        Those come first whose traces arrived last.

        Follows the documented page "api-reference/traces/runs/list-runs".

        Args:
            run_type: ``eval``, ``train`` or ``unknown``, or several of them.
            created_by: a user, or several: runs with at least one trace of theirs, in whose
                totals all traces count.
            created_after: counts only traces that began at this time or later, and leaves out
                runs without any: an aware datetime, or text such as ``2026-08-01T16:00:00Z``.
            created_before: counts only traces that began before this time, likewise.
            limit: runs a page, 1 to 100; 20 by default.
            cursor: the ``next_cursor`` of the page before, together with the same filters.

        Raises:
            ValidationRejectedError: the cursor is none of these filters.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        query = filter_query(
            run_type=run_type,
            created_by=created_by,
            created_after=created_after,
            created_before=created_before,
            limit=limit,
            cursor=cursor,
        )
        return await self._list_runs(query)

    def iter_runs(self, **filters: Unpack[RunFilters]) -> AsyncIterator[RunSummary]:
        """Reads all runs that match, page after page.

        Args:
            filters: those of `list_runs`. ``limit`` is the size of the pages, 100 by default.

        Raises:
            ValueError: a wrong argument; nothing was sent.
            APIError: a page could not be read.
        """
        return iterate(self._list_runs, walk_query(RunFilters, filters))

    async def _list_runs(self, query: Query) -> RunListPage:
        return await self._api._request(LIST_RUNS, RunListPage, query=query)

    async def get_run(self, run_id: str) -> RunSummary:
        """Reads the totals of a run.

        Follows the documented page "api-reference/traces/runs/get-a-run".

        Args:
            run_id: the run; an id that holds a slash can't be asked for.

        Raises:
            NotFoundError: the run has no traces that the caller can see.
            ValueError: an impossible id; nothing was sent.
            APIError: any other failure.
        """
        path = {"run_id": path_segment("run_id", run_id)}
        return await self._api._request(GET_RUN, RunSummary, path=path)

    async def list_run_steps(self, run_id: str) -> RunStepList:
        """Reads all training steps of a run, with their totals.

        Follows the documented page "api-reference/traces/runs/list-run-steps".

        Args:
            run_id: as for `get_run`; one that is not known has no steps.

        Raises:
            ValueError: an impossible id; nothing was sent.
            APIError: any other failure.
        """
        path = {"run_id": path_segment("run_id", run_id)}
        return await self._api._request(LIST_RUN_STEPS, RunStepList, path=path)
