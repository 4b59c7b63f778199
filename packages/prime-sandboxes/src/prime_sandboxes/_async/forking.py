"""Branching a sandbox off another one."""

from __future__ import annotations

from prime_core.creation import owe_later
from prime_core.handover import when_received
from prime_sandboxes._async.checkpoints import AsyncSandboxCheckpoints
from prime_sandboxes._async.lifecycle import AsyncSandboxLifecycle
from prime_sandboxes.arguments import check_id, check_seconds
from prime_sandboxes.checkpoints import fork_request
from prime_sandboxes.errors import CheckpointTimeoutError
from prime_sandboxes.outcomes import Fork

__all__ = ["AsyncSandboxForking"]


class AsyncSandboxForking(AsyncSandboxLifecycle, AsyncSandboxCheckpoints):
    """The part of the client that forks sandboxes."""

    async def fork(
        self,
        sandbox_id: str,
        name: str | None = None,
        *,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        timeout_minutes: int | None = None,
        wait_timeout: float = 300,
    ) -> Fork:
        """Makes a new sandbox with the files that a running one has now.

        It makes a checkpoint, waits until that is durable, and creates a sandbox from it, with
        the source's team, region, resources, lifetime, labels and network lists. Processes,
        volumes and environment variables are not taken over.

        However it fails or is cancelled, nothing is left behind: the checkpoint and, if there
        is one, the sandbox are deleted in the background. Only a checkpoint that was not
        durable in time is left to the caller, since it may still become that.

        Follows the documented page "sandboxes/checkpoints", "Fork".

        Args:
            sandbox_id: a running sandbox, which must live until the fork is made.
            name: name of the new sandbox, by default the source's with ``-fork``.
            cpu_cores: as in `CreateSandboxRequest`; the source's by default.
            memory_gb: GiB, as in `CreateSandboxRequest`; the source's by default.
            timeout_minutes: as in `CreateSandboxRequest`; the source's by default.
            wait_timeout: seconds to wait until the checkpoint is durable, above 0.

        Returns:
            The new sandbox, usually PENDING, and the checkpoint that it builds on.

        Raises:
            CheckpointFailedError: the checkpoint failed.
            CheckpointTimeoutError: it was not durable in time; the error names it.
            NotFoundError: there is no sandbox of this id that the caller can see.
            ConflictError: the sandbox does not run.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        check_id(sandbox_id)
        check_seconds("wait_timeout", wait_timeout)
        fork_request(None, name, cpu_cores, memory_gb, timeout_minutes)
        source = await self.get(sandbox_id)
        request = fork_request(source, name, cpu_cores, memory_gb, timeout_minutes)
        owed = owe_later(self._transport, f"The checkpoint of a fork of sandbox {sandbox_id}")
        try:
            made = await self._checkpoint(sandbox_id, owed)
            checkpoint = await self.wait_for_checkpoint(made.id, wait_timeout)
            request.checkpoint_id = checkpoint.id
            sandbox = await self._create(request)
        except CheckpointTimeoutError:
            owed.settle()
            raise
        except BaseException:
            owed.call_in()
            raise
        when_received(owed.settle, owed.call_in)
        return Fork(sandbox, checkpoint)
