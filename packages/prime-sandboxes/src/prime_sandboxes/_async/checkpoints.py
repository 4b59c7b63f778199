"""Saving the files of sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from prime_core._async.api_client import AsyncAPIClient
from prime_core.concurrency import run_all
from prime_core.creation import create_unkeyed
from prime_core.errors import ConflictError, NotFoundError
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, PollTimeout, close_schedules
from prime_core.reaper import Obligation
from prime_sandboxes import checkpoints, waiting
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_checkpoint_id, check_id, check_seconds
from prime_sandboxes.batch_routes import BatchRoute
from prime_sandboxes.errors import BatchStatusUnsupportedError, CheckpointTimeoutError
from prime_sandboxes.models import (
    BatchCheckpointRequest,
    BatchCheckpointResponse,
    CheckpointList,
    DeleteSandboxCheckpointsResponse,
    SandboxCheckpoint,
)
from prime_sandboxes.operations import (
    BATCH_GET_CHECKPOINTS,
    CREATE_CHECKPOINT,
    DELETE_CHECKPOINT,
    DELETE_SANDBOX_CHECKPOINTS,
    GET_CHECKPOINT,
    LIST_CHECKPOINTS,
)

__all__ = ["AsyncSandboxCheckpoints"]

# How long to wait before a checkpoint that is held is tried to be deleted again.
DISCARD_PAUSE = 1.0


class AsyncSandboxCheckpoints(AsyncSandboxResource):
    """The part of the client that makes, reads and deletes checkpoints.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._checkpoint_route = BatchRoute(
            self._transport, BATCH_GET_CHECKPOINTS, BatchCheckpointResponse
        )
        self._checkpoint_schedules = PerLoop(
            lambda: PollSchedule(self._read_checkpoints, transient=waiting.is_transient)
        )

    def _close_schedules(self) -> None:
        close_schedules(self._checkpoint_schedules)
        super()._close_schedules()

    async def checkpoint(self, sandbox_id: str) -> SandboxCheckpoint:
        """Saves the files of a running sandbox's root filesystem; volumes are left out.

        The checkpoint can be used once it is durable; see `wait_for_checkpoint`. Until then
        the sandbox must live, or the checkpoint is lost. After that a sandbox can be made from
        it with ``CreateSandboxRequest(checkpoint_id=...)``.

        It is sent once. When the caller is cancelled, or the program ends other than by being
        killed, while the request may have left, the checkpoint is deleted in the background. When
        the connection breaks, there may be one all the same: `list_checkpoints` tells.

        Follows the documented page "sandboxes/checkpoints".

        Args:
            sandbox_id: a running sandbox.

        Returns:
            The checkpoint, in progress. It is billed from when it is durable until it is
            deleted.

        Raises:
            NotFoundError: there is no sandbox of this id that the caller can see.
            ConflictError: the sandbox does not run.
            APIError: any other failure.
        """
        return await self._checkpoint(check_id(sandbox_id))

    async def _checkpoint(
        self, sandbox_id: str, obligation: Obligation | None = None
    ) -> SandboxCheckpoint:
        """Makes a checkpoint; an obligation that is given is kept, and discards it later."""
        return await create_unkeyed(
            self._transport,
            CREATE_CHECKPOINT,
            SandboxCheckpoint,
            path={"sandbox_id": sandbox_id},
            description=f"A checkpoint of sandbox {sandbox_id}",
            discard=lambda made: self._discard_checkpoint(made.id),
            obligation=obligation,
        )

    async def _discard_checkpoint(self, checkpoint_id: str) -> None:
        """Deletes a checkpoint as soon as nothing holds it; the reaper bounds that in time."""
        while True:
            try:
                await self.delete_checkpoint(checkpoint_id)
                return
            except NotFoundError:
                return
            except ConflictError:  # it is in progress, or a sandbox that is going builds on it
                await asyncio.sleep(DISCARD_PAUSE)

    async def get_checkpoint(self, checkpoint_id: str) -> SandboxCheckpoint:
        """Reads a checkpoint, of a sandbox or of a volume.

        Follows the documented page "sandboxes/checkpoints".

        Args:
            checkpoint_id: 1 to 64 characters.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        path = {"checkpoint_id": check_checkpoint_id(checkpoint_id)}
        return await self._transport.request(GET_CHECKPOINT, SandboxCheckpoint, path=path)

    async def get_checkpoints(self, checkpoint_ids: Sequence[str]) -> BatchCheckpointResponse:
        """Reads 1 to 100 checkpoints at once.

        Args:
            checkpoint_ids: different ids of 1 to 64 characters.

        Returns:
            Those that were found, and an error for each other id.

        Raises:
            BatchStatusUnsupportedError: the platform has no such route.
            ValueError: no id, too many, or one that is repeated; nothing was sent.
            APIError: any other failure.
        """
        if isinstance(checkpoint_ids, str):
            raise ValueError("checkpoint_ids is a list of ids, not one string")
        ids = [check_checkpoint_id(checkpoint_id) for checkpoint_id in checkpoint_ids]
        return await self._checkpoint_route.read(BatchCheckpointRequest(checkpoint_ids=ids))

    async def list_checkpoints(
        self, sandbox_id: str, checkpoint_id: str | None = None
    ) -> list[SandboxCheckpoint]:
        """Reads the checkpoints of a sandbox's root filesystem, oldest first.

        Those of volumes are not among them: `get_checkpoint` reads them.

        Follows the documented page "sandboxes/checkpoints".

        Args:
            sandbox_id: the sandbox, also an ended one.
            checkpoint_id: only this one.

        Raises:
            NotFoundError: there is no sandbox of this id that the caller can see.
            APIError: any other failure.
        """
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        answer = await self._transport.request(
            LIST_CHECKPOINTS,
            CheckpointList,
            path={"sandbox_id": check_id(sandbox_id)},
            query={"checkpoint_id": checkpoint_id},
        )
        return answer.checkpoints

    async def delete_checkpoint(self, checkpoint_id: str) -> None:
        """Deletes a checkpoint that is durable or has failed.

        What other checkpoints need of its data stays.

        Args:
            checkpoint_id: 1 to 64 characters.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            ConflictError: it is in progress, or a live sandbox builds on it.
            APIError: any other failure.
        """
        path = {"checkpoint_id": check_checkpoint_id(checkpoint_id)}
        await self._transport.request(DELETE_CHECKPOINT, path=path)

    async def delete_sandbox_checkpoints(self, sandbox_id: str) -> DeleteSandboxCheckpointsResponse:
        """Deletes all checkpoints of a sandbox, as far as that is possible.

        Args:
            sandbox_id: the sandbox, also an ended one.

        Returns:
            The ids that were deleted, and an error for each that was not: ``CONFLICT`` for
            one in progress or one that a live sandbox builds on.

        Raises:
            NotFoundError: there is no sandbox of this id that the caller can see.
            APIError: any other failure.
        """
        return await self._transport.request(
            DELETE_SANDBOX_CHECKPOINTS,
            DeleteSandboxCheckpointsResponse,
            path={"sandbox_id": check_id(sandbox_id)},
        )

    async def wait_for_checkpoint(
        self, checkpoint_id: str, timeout_seconds: float = 300
    ) -> SandboxCheckpoint:
        """Waits until a checkpoint is durable.

        All waits of a client share their questions, up to 100 checkpoints in each.

        Follows the documented page "sandboxes/checkpoints".

        Args:
            checkpoint_id: 1 to 64 characters.
            timeout_seconds: how long to wait, above 0.

        Returns:
            The durable checkpoint.

        Raises:
            CheckpointFailedError: it failed or is being deleted; a ``RuntimeError``.
            CheckpointTimeoutError: the time is over, which is no failure of the checkpoint; a
                ``TimeoutError``.
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        check_checkpoint_id(checkpoint_id)
        check_seconds("timeout_seconds", timeout_seconds)
        schedule = self._checkpoint_schedules.get()
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        try:
            return await schedule.wait(checkpoint_id, checkpoints.is_durable, deadline)
        except PollTimeout as late:
            raise CheckpointTimeoutError(checkpoint_id, timeout_seconds) from late.last_error

    async def _read_checkpoints(
        self, checkpoint_ids: list[str]
    ) -> Mapping[str, SandboxCheckpoint | Exception]:
        """Checkpoints for the poll schedule, one by one where the batch route is missing."""
        if not self._checkpoint_route.missing:
            try:
                answer = await self.get_checkpoints(checkpoint_ids)
            except BatchStatusUnsupportedError:
                pass
            else:
                found: dict[str, SandboxCheckpoint | Exception] = {
                    checkpoint.id: checkpoint for checkpoint in answer.checkpoints
                }
                for error in answer.errors:
                    found[error.checkpoint_id] = NotFoundError(
                        f"Checkpoint {error.checkpoint_id}: {error.message}", code=error.code
                    )
                return found
        return dict(await run_all(self._read_checkpoint(each) for each in checkpoint_ids))

    async def _read_checkpoint(
        self, checkpoint_id: str
    ) -> tuple[str, SandboxCheckpoint | Exception]:
        try:
            return checkpoint_id, await self.get_checkpoint(checkpoint_id)
        except NotFoundError as error:
            return checkpoint_id, error
