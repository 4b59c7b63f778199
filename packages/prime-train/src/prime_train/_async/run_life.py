"""The life of runs after their dispatch: read, waited for, paused, restarted, stopped, deleted."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Collection, Mapping

from prime_core._async.api_client import AsyncAPIClient
from prime_core.arguments import check_id, check_seconds
from prime_core.errors import APIError, ConfigurationError, ConflictError
from prime_core.pagination import Page, iterate_pages
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_train._async.run_outputs import AsyncRunOutputs
from prime_train.hosted_waiting import is_transient
from prime_train.models.runs import (
    FINAL_RUN_STATUSES,
    Run,
    RunEnvelope,
    RunPage,
    RunState,
    RunStatus,
)
from prime_train.operations import (
    DELETE_RUN,
    GET_TRAINING_RUN,
    LIST_TRAINING_RUNS,
    PAUSE_TRAINING_RUN,
    RESTART_RUN,
    STOP_RUN,
)
from prime_train.run_refusals import explained
from prime_train.run_waiting import FIRST_PAUSE, check_statuses, wait_for_run

__all__ = ["AsyncRunLife"]

# Runs of one request when all are read.
PAGE = 100
PAUSES = frozenset({RunStatus.PAUSING, RunStatus.PAUSED})


class AsyncRunLife(AsyncRunOutputs):
    """What can be done with runs that were dispatched. Made by `AsyncTrainClient.runs`.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules: PerLoop[PollSchedule[str, Run]] = PerLoop(
            lambda: PollSchedule(self._look, transient=is_transient, batch=1)
        )

    async def get(self, run_id: str) -> Run:
        """Reads a run.

        Args:
            run_id: the run.

        Raises:
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        return (await self._transport.request(GET_TRAINING_RUN, RunEnvelope, path=path)).run

    async def list(
        self,
        *,
        page: int = 1,
        limit: int = 20,
        mine: bool = False,
        team_id: str | None = None,
    ) -> RunPage:
        """Reads a page of runs, the newest first; `iter` reads all of them.

        An older platform answers with all runs at once; the page is then made here.

        Args:
            page: its number, at least 1.
            limit: runs of a page, at least 1.
            mine: only those that the key's owner dispatched.
            team_id: whose; None takes the client's team, "" is the personal account.

        Raises:
            ConfigurationError: ``mine`` on an older platform without ``PRIME_USER_ID``.
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        if page < 1 or limit < 1:
            raise ValueError("page and limit are at least 1")
        query: dict[str, str | int | None] = {
            "page": page,
            "limit": limit,
            "mine": "true" if mine else None,
        }
        found = await self._transport.request(
            LIST_TRAINING_RUNS, RunPage, query=query, team=team_id
        )
        return found if found.total is not None else self._paged(found, page, limit, mine, team_id)

    def _paged(
        self, found: RunPage, page: int, limit: int, mine: bool, team_id: str | None
    ) -> RunPage:
        """A page of what an older platform answers: the runs of everybody, whatever was asked."""
        user = self.client.config.user_id
        if mine and not user:
            raise ConfigurationError("This platform does not say whose runs are: set PRIME_USER_ID")
        team = (self.client.config.team_id if team_id is None else team_id) or None
        runs = [
            run
            for run in found.runs
            if (run.team_id or None) == team and (not mine or run.user_id == user)
        ]
        return RunPage(
            runs=runs[(page - 1) * limit : page * limit],
            total=len(runs),
            page=page,
            limit=limit,
            total_pages=-(-len(runs) // limit),
        )

    async def iter(self, *, mine: bool = False, team_id: str | None = None) -> AsyncIterator[Run]:
        """Reads all runs, page after page, the newest first.

        Args:
            mine: as for `list`.
            team_id: as for `list`.
        """

        async def fetch(number: int) -> Page[Run]:
            found = await self.list(page=number, limit=PAGE, mine=mine, team_id=team_id)
            return Page(found.runs, found.total)

        async for run in iterate_pages(fetch, PAGE, lambda run: run.id):
            yield run

    async def wait(
        self,
        run_id: str,
        *,
        until: str | Collection[str] = RunStatus.COMPLETED,
        timeout: float = 7 * 24 * 3600,
    ) -> Run:
        """Waits until a run is in a state.

        A failure to read the run says nothing of it, and is waited out. What has completed has
        been through all states on the way, and so fulfils a wait for those.

        Args:
            run_id: the run.
            until: a state, such as ``RUNNING``, or several of which any will do.
            timeout: seconds, above 0.

        Returns:
            The run, in that state.

        Raises:
            RunFailedError: it failed, with the platform's words and diagnosis.
            RunEndedError: it ended otherwise than was waited for.
            RunTimeoutError: a ``TimeoutError``; it goes on, and may cost money.
            NotFoundError: there is no such run.
            ValueError: a wrong argument; nothing was sent.
            APIError: its state could not be read.
        """
        check_id("run_id", run_id)
        check_seconds("timeout", timeout)
        return await wait_for_run(self._schedules.get(), run_id, check_statuses(until), timeout)

    async def stop(self, run_id: str, *, wait: bool = False, timeout: float = 180) -> Run:
        """Stops a run, which releases its GPUs; what it saved stays.

        One that has ended already is returned as it is.

        Follows the documented page "hosted-training/hosted-rl", "Run lifecycle".

        Args:
            run_id: the run.
            wait: wait until it has ended, with a look each 3 s.
            timeout: seconds for that, above 0.

        Returns:
            The run; without ``wait`` it may still be about to end.

        Raises:
            RunTimeoutError: a ``TimeoutError``; it has not ended in time.
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        check_seconds("timeout", timeout)
        try:
            run = (await self._transport.request(STOP_RUN, RunEnvelope, path=path)).run
        except ConflictError:
            run = await self.get(run_id)
            if run.status not in FINAL_RUN_STATUSES:
                raise
        if not wait or run.status in FINAL_RUN_STATUSES:
            return run
        return await wait_for_run(
            self._schedules.get(), run_id, FINAL_RUN_STATUSES, timeout, longest=FIRST_PAUSE
        )

    async def restart(self, run_id: str) -> Run:
        """Restarts a RUNNING run from its latest checkpoint.

        It is sent once: when the answer is lost, `get` tells whether the run starts again.

        Args:
            run_id: the run.

        Raises:
            ConflictError: it is not RUNNING.
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        return (await self._transport.request(RESTART_RUN, RunEnvelope, path=path)).run

    async def pause(self, run_id: str) -> RunState:
        """Pauses a RUNNING run with a volume: it saves its next step there and frees its GPUs.

        It is PAUSING meanwhile, and costs as much as before; ``wait(run_id, until="PAUSED")``
        waits for the end of that. When the answer is lost, the run's state is read instead of
        asking again.

        Follows the documented page "hosted-training/pause-resume".

        Args:
            run_id: the run.

        Raises:
            BadRequestError: it has no volume, or its image is older than v0.10.1.dev11.
            ConflictError: it is not RUNNING.
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        try:
            with explained():
                state = await self._transport.request(PAUSE_TRAINING_RUN, RunState, path=path)
            return state.model_copy(update={"run_id": run_id})  # older platforms leave it out
        except APIError as error:
            if error.status_code is not None and error.status_code < 500:
                raise
            run = await self.get(run_id)
            if run.status not in PAUSES:
                raise
            return RunState(run_id=run_id, status=run.status)

    async def delete(self, run_id: str) -> None:
        """Deletes a run of any kind with its deployment; one that goes on is ended by that.

        Its checkpoints stay on its volume.

        Args:
            run_id: the run.

        Raises:
            NotFoundError: there is no such run.
            ForbiddenError: it is not the caller's to delete.
            APIError: any other failure.
        """
        await self._transport.request(DELETE_RUN, path={"run_id": check_id("run_id", run_id)})

    async def _look(self, run_ids: builtins.list[str]) -> Mapping[str, Run]:
        """States for the poll schedule, which asks for one run at a time."""
        return {each: await self.get(each) for each in run_ids}

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)
