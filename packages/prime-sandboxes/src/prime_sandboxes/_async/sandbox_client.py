"""The client of sandboxes, composed of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_sandboxes._async.commands import AsyncSandboxCommands
from prime_sandboxes._async.files import AsyncSandboxFiles
from prime_sandboxes._async.fleet import AsyncFleet
from prime_sandboxes._async.forking import AsyncSandboxForking
from prime_sandboxes._async.jobs import AsyncSandboxJobs
from prime_sandboxes._async.processes import AsyncSandboxProcesses
from prime_sandboxes._async.ssh import AsyncSandboxSSH
from prime_sandboxes._async.volumes import AsyncVolumes
from prime_sandboxes._async.waiting import AsyncSandboxWaiting
from prime_sandboxes.arguments import check_labels
from prime_sandboxes.job_output import JobOutputs, OutputLimits
from prime_sandboxes.networks import PendingJoins

__all__ = ["AsyncSandboxClient"]

USER_AGENT = "prime-sandboxes/0.1.0"


class AsyncSandboxClient(
    AsyncSandboxForking,
    AsyncSandboxCommands,
    AsyncSandboxFiles,
    AsyncSandboxJobs,
    AsyncSandboxProcesses,
    AsyncSandboxSSH,
    AsyncSandboxWaiting,
):
    """Creates sandboxes, runs commands in them, moves files, saves, forks and deletes them.

    Use it as a context manager, or close it with `aclose`. It works on any number of event
    loops and in forked children, and pickles as its configuration, without the key.

    Follows the documented page "sandboxes/sdk".

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        max_connections: connections for short calls, at least 1. Commands that run don't use
            them.
        max_keepalive_connections: accepted for compatibility; an idle connection is closed
            after 15 s, however many there are.
        background_job_output_concurrency: outputs of finished background jobs that are read at
            once, at least 1.
        background_job_output_queue_size: accepted for compatibility, at least 1; further outputs
            wait for their turn, however many.
        background_job_output_cache_bytes: memory for outputs that were read, in bytes; 0 keeps
            none.
        client: connections to share with other clients, in place of ``api_key``.
    """

    def __init__(
        self,
        api_key: str | None = None,
        max_connections: int = 128,
        max_keepalive_connections: int = 200,
        *,
        background_job_output_concurrency: int = 20,
        background_job_output_queue_size: int = 200,
        background_job_output_cache_bytes: int = 64 * 1024 * 1024,
        client: AsyncAPIClient | None = None,
    ) -> None:
        if client is not None and not isinstance(client, AsyncAPIClient):
            raise TypeError(f"client is an AsyncAPIClient, not {type(client).__name__}")
        if client is not None and api_key is not None:
            raise ValueError("pass api_key or client, not both")
        limits = OutputLimits(
            background_job_output_concurrency,
            background_job_output_queue_size,
            background_job_output_cache_bytes,
        )
        super().__init__(
            client
            or AsyncAPIClient(api_key, user_agent=USER_AGENT, max_connections=max_connections)
        )
        self._outputs = JobOutputs(self._run_in_sandbox, limits)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.client, self._joins, self._outputs.limits)

    @property
    def volumes(self) -> AsyncVolumes:
        """Named storage that sandboxes share."""
        return AsyncVolumes(self)

    def fleet(self, limit: int = 100, labels: Sequence[str] = ()) -> AsyncFleet:
        """Makes a fleet: many short-lived sandboxes, none of which is left running.

        Args:
            limit: the most sandboxes that live at once, at least 1.
            labels: labels for each of them, besides the fleet's own.
        """
        return AsyncFleet(self, limit, check_labels(labels) or [])

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
        """Waits, at most 15 s, for clean-up under way, then closes the connections.

        Live processes that were not closed go on without it; `attach_process` of another
        client finds them again. Shared connections are closed by the last client that uses them.
        """
        await self._detach_processes()
        self._gateway.clear()
        self._close_schedules()
        self._jobs.close()
        await self.client._release(self)

    def __repr__(self) -> str:
        return f"AsyncSandboxClient({self.client!r})"


def _restore(
    cls: type[AsyncSandboxClient],
    client: AsyncAPIClient,
    joins: PendingJoins,
    limits: OutputLimits,
) -> AsyncSandboxClient:
    restored = cls(
        client=client,
        background_job_output_concurrency=limits.concurrency,
        background_job_output_queue_size=limits.queue_size,
        background_job_output_cache_bytes=limits.cache_bytes,
    )
    restored._joins.update(joins)
    return restored
