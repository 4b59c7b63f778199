"""Pods: renting machines, and giving them back."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal

from prime_compute._async.sessions import AsyncPodSession
from prime_compute.models import (
    Pod,
    PodHistory,
    PodHistoryEntry,
    PodList,
    PodLog,
    PodRequest,
    PodStatusList,
    PodStatusSnapshot,
)
from prime_compute.models.pod_requests import pod_body
from prime_compute.operations import (
    CREATE_POD,
    DELETE_POD,
    GET_POD,
    GET_POD_LOG,
    GET_PODS_STATUS,
    LIST_POD_HISTORY,
    LIST_PODS,
)
from prime_compute.waiting import Missing, PodSchedule, is_transient, wait_until_pod_active
from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id, check_ids, check_seconds
from prime_core.batching import Batcher
from prime_core.concurrency import run_all
from prime_core.creation import create_unkeyed
from prime_core.errors import ConflictError, NotFoundError
from prime_core.marks import carries, described, new_mark
from prime_core.offsets import check_window, iterate_offsets
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_core.reaper import Obligation

__all__ = ["AsyncPods"]

# Pods of one request when all are read, and ids of one question for states.
PAGE = 100
BATCH = 100
# Seconds that a question for a state waits for others to travel with.
BATCH_DELAY = 0.025
# Before a pod whose state forbids its end is tried to be deleted again.
DISCARD_PAUSE = 1.0


class AsyncPods(AsyncResource):
    """Creates, reads and deletes pods. Made by `AsyncComputeClient.pods`.

    Follows the documented pages "api-reference/provision-gpu" and "api-reference/managing-pods".

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules: PerLoop[PodSchedule] = PerLoop(
            lambda: PollSchedule(self._look, transient=is_transient)
        )
        self._batches = PerLoop(
            lambda: Batcher(self._read_batch, size=BATCH, delay=BATCH_DELAY),
        )

    async def create(self, request: PodRequest) -> Pod:
        """Rents a pod; it costs money until it is deleted. `session` does both.

        It is sent once, and its name gets a mark that no other create has. When the answer is
        lost, the pod is looked for by its mark for some seconds, and returned when it is found.
        Else the failure is raised, and the pod is looked for in the background for a minute
        more and deleted if it appears; so it is when the caller is cancelled, or the program
        ends other than by being killed. The mark tells for certain what this call made, as long
        as the platform shows names as they were sent. What appears later than that, or after
        the program was killed, is left: its name tells.

        Args:
            request: what to rent, from `PodRequest.from_offer`.

        Returns:
            The pod, usually PROVISIONING; see `wait_until_active`.

        Raises:
            PaymentRequiredError: the wallet is empty.
            ConflictError: the offer is sold out, or a disk is in use; `BadRequestError` and
                `NotFoundError` may say so too.
            ValidationError: the platform found the request invalid.
            ValueError: ``shared_with_team`` without a team; nothing was sent.
            APIError: any other failure.
        """
        return await self._create(request)

    async def _create(self, request: PodRequest, obligation: Obligation | None = None) -> Pod:
        """Creates a pod; an obligation that is given is kept, and deletes it later."""
        if not isinstance(request, PodRequest):
            raise TypeError(f"pass a PodRequest, not {type(request).__name__}")
        team = self.client.config.team_id if request.team_id is None else request.team_id
        if request.shared_with_team and not team:
            raise ValueError("shared_with_team needs a team: pass team_id, or configure one")
        mark = new_mark()

        async def find() -> builtins.list[Pod]:
            found = [pod async for pod in self.iter() if carries(pod.name, mark)]
            return sorted(found, key=lambda pod: pod.created_at)

        return await create_unkeyed(
            self._transport,
            CREATE_POD,
            Pod,
            body=pod_body(request, mark),
            team=request.team_id,
            description=described(request.name, mark, "pod"),
            discard=lambda pod: self._discard(pod.id),
            find=find,
            obligation=obligation,
        )

    async def _discard(self, pod_id: str) -> None:
        """Deletes a pod as soon as its state allows it; the reaper bounds that in time."""
        while True:
            try:
                await self.delete(pod_id)
                return
            except NotFoundError:
                return
            except ConflictError:
                await asyncio.sleep(DISCARD_PAUSE)

    def session(self, request: PodRequest, *, timeout: float = 1800) -> AsyncPodSession:
        """Rents a pod for a block of code.

        Use it as a context manager: entering creates the pod and waits until it can be used.
        However the block is left, by its end, an exception, a cancellation, Ctrl-C, SIGTERM or
        SIGHUP, the pod is deleted: on a thread of its own, waited for by the block's end and by
        the interpreter's exit. `AsyncPodSession.keep` leaves it alive. The signals are minded
        where the block is entered in the main thread and the program has no handler of its own;
        in another thread a `RuntimeWarning` says that they are not.

        Args:
            request: what to rent.
            timeout: seconds from entering the block until it can be used, above 0; else it is
                deleted again.

        Raises:
            ValueError: a wrong argument; nothing was sent.
        """
        if not isinstance(request, PodRequest):
            raise TypeError(f"pass a PodRequest, not {type(request).__name__}")
        return AsyncPodSession(self, request, check_seconds("timeout", timeout))

    async def get(self, pod_id: str) -> Pod:
        """Reads a live pod.

        Args:
            pod_id: the pod.

        Raises:
            NotFoundError: there is none of this id, or it has ended; see `history`.
            APIError: any other failure.
        """
        return await self._transport.request(
            GET_POD, Pod, path={"pod_id": check_id("pod_id", pod_id)}
        )

    async def list(self, *, offset: int = 0, limit: int = PAGE) -> PodList:
        """Reads a part of the list of live pods; `iter` reads all of them.

        Args:
            offset: pods to skip, at least 0.
            limit: most pods to return, at least 1.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit)
        query = {"offset": offset, "limit": limit}
        return await self._transport.request(LIST_PODS, PodList, query=query)

    async def iter(self) -> AsyncIterator[Pod]:
        """Reads all live pods of the key's owner, part after part."""

        async def fetch(offset: int) -> tuple[Sequence[Pod], int]:
            page = await self.list(offset=offset)
            return page.data, page.total_count

        async for pod in iterate_offsets(fetch, PAGE, lambda pod: pod.id):
            yield pod

    async def history(
        self,
        *,
        sort_by: Literal["terminatedAt", "createdAt"] = "terminatedAt",
        sort_order: Literal["asc", "desc"] = "desc",
        offset: int = 0,
        limit: int = PAGE,
    ) -> PodHistory:
        """Reads a part of what has ended, with what it cost; `iter_history` reads all of it.

        Args:
            sort_by: time of the end or of the creation.
            sort_order: ``desc`` for the latest first.
            offset: rows to skip, at least 0.
            limit: most rows to return, at least 1.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit)
        query: dict[str, str | int] = {
            "sort_by": sort_by,
            "sort_order": sort_order,
            "offset": offset,
            "limit": limit,
        }
        return await self._transport.request(LIST_POD_HISTORY, PodHistory, query=query)

    async def iter_history(self) -> AsyncIterator[PodHistoryEntry]:
        """Reads all that has ended, the last first."""

        async def fetch(offset: int) -> tuple[Sequence[PodHistoryEntry], int]:
            page = await self.history(offset=offset)
            return page.data, page.total_count

        async for entry in iterate_offsets(fetch, PAGE, lambda entry: entry.id):
            yield entry

    async def logs(self, pod_id: str, *, tail: int = 100) -> str:
        """Reads the latest lines of a pod's log.

        Args:
            pod_id: the pod.
            tail: how many lines, at least 1.

        Raises:
            NotFoundError: there is no live pod of this id.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        check_id("pod_id", pod_id)
        check_window(0, tail)
        answer = await self._transport.request(
            GET_POD_LOG, PodLog, path={"pod_id": pod_id}, query={"tail": tail}
        )
        return answer.text

    async def delete(self, pod_id: str) -> None:
        """Ends a pod; what is on it and not on a disk of its own is lost.

        Args:
            pod_id: the pod.

        Raises:
            NotFoundError: there is no live pod of this id.
            ConflictError: its state forbids it for now.
            APIError: any other failure.
        """
        await self._transport.request(DELETE_POD, path={"pod_id": check_id("pod_id", pod_id)})

    async def get_status(self, pod_id: str) -> PodStatusSnapshot:
        """Reads a pod's state; calls at about the same time travel together.

        Args:
            pod_id: the pod.

        Raises:
            NotFoundError: the platform knows no live pod of this id.
            APIError: any other failure.
        """
        return await self._batches.get().submit(check_id("pod_id", pod_id))

    async def get_statuses(self, pod_ids: Sequence[str]) -> dict[str, PodStatusSnapshot]:
        """Reads the states of many pods, a hundred a request.

        Calls at about the same time travel together.

        Args:
            pod_ids: ids, any number.

        Returns:
            The state of each that the platform knows, by id.

        Raises:
            ValueError: an impossible id; nothing was sent.
            APIError: a request failed.
        """
        batch = self._batches.get()

        async def read(pod_id: str) -> PodStatusSnapshot | None:
            try:
                return await batch.submit(pod_id)
            except NotFoundError:
                return None

        ids = check_ids("pod_ids", pod_ids)
        states = await run_all(read(pod_id) for pod_id in ids)
        return {pod_id: state for pod_id, state in zip(ids, states, strict=True) if state}

    async def _read_statuses(self, pod_ids: Sequence[str]) -> dict[str, PodStatusSnapshot]:
        answer = await self._transport.request(
            GET_PODS_STATUS, PodStatusList, query={"pod_ids": pod_ids}
        )
        return {row.pod_id: row for row in answer.data or ()}

    async def _read_batch(
        self, pod_ids: builtins.list[str]
    ) -> Mapping[str, PodStatusSnapshot | BaseException]:
        """States for the batches; what is missing is not found."""
        found = await self._read_statuses(pod_ids)
        return {
            pod_id: found.get(pod_id) or NotFoundError(f"There is no live pod {pod_id}.")
            for pod_id in pod_ids
        }

    async def _look(
        self, pod_ids: builtins.list[str]
    ) -> Mapping[str, PodStatusSnapshot | Missing | Exception]:
        """States for the poll schedule; what is missing is asked for by itself."""
        found = await self._read_statuses(pod_ids)
        missing = [pod_id for pod_id in pod_ids if pod_id not in found]
        asked = await run_all(self._look_for(pod_id) for pod_id in missing)
        return {**found, **dict(zip(missing, asked, strict=True))}

    async def _look_for(self, pod_id: str) -> PodStatusSnapshot | Missing:
        try:
            pod = await self.get(pod_id)
        except NotFoundError:
            return Missing()
        return PodStatusSnapshot.model_validate({**pod.model_dump(), "pod_id": pod_id})

    async def wait_until_active(self, pod_id: str, *, timeout: float = 1800) -> PodStatusSnapshot:
        """Waits until a pod is ACTIVE and says how to reach it by SSH.

        All waits of a client share their questions to the platform. A pod that is ERROR is
        waited for, since the platform tries again by itself; a failure of the installation
        that the platform tells ends the wait at once. So does a pod that is not known any more.

        Args:
            pod_id: the pod.
            timeout: seconds, above 0.

        Returns:
            Its state, with the checked connections in `PodStatusSnapshot.ssh`.

        Raises:
            PodInstallationError: its image could not be installed; it may still cost money.
            PodGoneError: it was terminated, or the platform knows of none of this id.
            PodWaitTimeoutError: a ``TimeoutError``; not in time.
            PodNotActiveError: what the platform says of its SSH server is no address.
            ValueError: a wrong argument; nothing was sent.
            APIError: the states could not be read.
        """
        check_id("pod_id", pod_id)
        deadline = asyncio.get_running_loop().time() + check_seconds("timeout", timeout)
        return await self._wait_until_active(pod_id, deadline, timeout)

    async def _wait_until_active(
        self, pod_id: str, deadline: float, timeout: float
    ) -> PodStatusSnapshot:
        """Waits until a loop time, which the error calls ``timeout`` seconds."""
        return await wait_until_pod_active(self._schedules.get(), pod_id, deadline, timeout)

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)
