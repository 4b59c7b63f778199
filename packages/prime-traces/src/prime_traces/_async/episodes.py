"""Finding and reading episodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from typing_extensions import Unpack

from prime_core.encoding import Query
from prime_traces._async.resource import AsyncTracesResource
from prime_traces.filters import (
    EpisodeFilters,
    EpisodeTraceFilters,
    Moment,
    filter_query,
    path_segment,
    walk_query,
)
from prime_traces.models import (
    EpisodeDetail,
    EpisodeListPage,
    EpisodeSummary,
    TraceListPage,
    TraceSummary,
)
from prime_traces.operations import GET_EPISODE, LIST_EPISODE_TRACES, LIST_EPISODES
from prime_traces.pages import iterate

__all__ = ["AsyncEpisodeQueries"]


class AsyncEpisodeQueries(AsyncTracesResource):
    """The part of the client that finds and reads episodes."""

    async def list_episodes(
        self,
        *,
        run_id: str | None = None,
        upload_id: str | Sequence[str] | None = None,
        environment_id: str | None = None,
        outcome: str | None = None,
        has_error: bool | None = None,
        run_step: int | None = None,
        step_min: int | None = None,
        step_max: int | None = None,
        created_after: Moment | None = None,
        created_before: Moment | None = None,
        context: Mapping[str, str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> EpisodeListPage:
        """Reads a page of the episodes, the latest first; `iter_episodes` reads all of them.

        Steps and labels are those of an episode's traces: one without traces never matches
        them.

        Follows the documented page "api-reference/traces/episodes/list-episodes".

        Args:
            run_id: the run.
            upload_id: the upload, or several, by the ``upload_id`` of its receipt.
            environment_id: the environment.
            outcome: what came of it.
            has_error: whether it failed itself; its traces' errors don't count.
            run_step: the training step of one of its traces, from 0.
            step_min: the least training step of one of its traces.
            step_max: the highest training step of one of its traces.
            created_after: the earliest time at which it began: an aware datetime, or text such
                as ``2026-08-01T16:00:00Z``.
            created_before: the latest time at which it began, likewise.
            context: labels of its traces' upload, each by its value.
            limit: episodes a page, 1 to 100; 20 by default.
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
            outcome=outcome,
            has_error=has_error,
            run_step=run_step,
            step_min=step_min,
            step_max=step_max,
            created_after=created_after,
            created_before=created_before,
            context=context,
            limit=limit,
            cursor=cursor,
        )
        return await self._list_episodes(query)

    def iter_episodes(self, **filters: Unpack[EpisodeFilters]) -> AsyncIterator[EpisodeSummary]:
        """Reads all episodes that match, page after page.

        Args:
            filters: those of `list_episodes`. ``limit`` is the size of the pages, 100 by
                default.

        Raises:
            ValueError: a wrong argument; nothing was sent.
            APIError: a page could not be read.
        """
        return iterate(self._list_episodes, walk_query(EpisodeFilters, filters))

    async def _list_episodes(self, query: Query) -> EpisodeListPage:
        return await self._api._request(LIST_EPISODES, EpisodeListPage, query=query)

    async def get_episode(self, episode_id: str) -> EpisodeDetail:
        """Reads an episode, with totals over its traces.

        Follows the documented page "api-reference/traces/episodes/get-an-episode".

        Args:
            episode_id: the episode; an id that holds a slash can't be asked for.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            ValueError: an impossible id; nothing was sent.
            APIError: any other failure.
        """
        path = {"episode_id": path_segment("episode_id", episode_id)}
        return await self._api._request(GET_EPISODE, EpisodeDetail, path=path)

    async def get_episode_raw(self, episode_id: str) -> bytes:
        """Reads an episode's document as it was uploaded, its traces replaced by their ids.

        What breaks off after its first bytes is not begun anew.

        Args:
            episode_id: as for `get_episode`.

        Raises:
            As `get_episode`.
        """
        path = {"episode_id": path_segment("episode_id", episode_id)}
        return await self._api._read_document(GET_EPISODE, path)

    async def get_episode_record(self, episode_id: str) -> dict[str, Any]:
        """Reads an episode's document, as `get_episode_raw` does, and parses it.

        Args:
            episode_id: as for `get_episode`.

        Returns:
            The document; its ``traces`` are ids.

        Raises:
            As `get_episode`.
        """
        path = {"episode_id": path_segment("episode_id", episode_id)}
        record: dict[str, Any] = await self._api._read_record(GET_EPISODE, path)
        return record

    async def list_episode_traces(
        self,
        episode_id: str,
        *,
        run_id: str | None = None,
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
        limit: int | None = None,
        cursor: str | None = None,
    ) -> TraceListPage:
        """Reads a page of an episode's traces, the latest first; see `iter_episode_traces`.

        An empty page means that the episode exists and none of its traces matches.

        Follows the documented page "api-reference/traces/episodes/list-episode-traces".

        Args:
            episode_id: as for `get_episode`.
            run_id: as for `list`, like all that follow.
            environment_id: the environment.
            model_id: the model's name.
            model_provider: who served the model.
            task_id: the task.
            reward_min: the least reward.
            reward_max: the highest reward.
            outcome: why it stopped.
            has_error: whether an error ended it.
            is_truncated: whether a limit cut it short.
            created_after: the earliest time at which it began.
            created_before: the latest time at which it began.
            context: labels of its upload.
            limit: traces a page, 1 to 100; 20 by default.
            cursor: the ``next_cursor`` of the page before, together with the same filters.

        Raises:
            NotFoundError: there is no episode of this id that the caller can see.
            ValidationRejectedError: the cursor is none of these filters.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        query = filter_query(
            run_id=run_id,
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
            limit=limit,
            cursor=cursor,
        )
        return await self._list_members(episode_id, query)

    def iter_episode_traces(
        self, episode_id: str, **filters: Unpack[EpisodeTraceFilters]
    ) -> AsyncIterator[TraceSummary]:
        """Reads all traces of an episode that match, page after page.

        Args:
            episode_id: as for `get_episode`.
            filters: those of `list_episode_traces`. ``limit`` is the size of the pages, 100 by
                default.

        Raises:
            As `list_episode_traces`.
        """
        path_segment("episode_id", episode_id)
        return iterate(
            lambda query: self._list_members(episode_id, query),
            walk_query(EpisodeTraceFilters, filters),
        )

    async def _list_members(self, episode_id: str, query: Query) -> TraceListPage:
        path = {"episode_id": path_segment("episode_id", episode_id)}
        return await self._api._request(LIST_EPISODE_TRACES, TraceListPage, path=path, query=query)
