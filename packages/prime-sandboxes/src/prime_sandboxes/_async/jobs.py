"""Background jobs in sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from prime_core._async.api_client import AsyncAPIClient
from prime_core.concurrency import run_all
from prime_core.errors import PrimeError
from prime_core.polling import PollTimeout
from prime_sandboxes import jobs as rules
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_id, check_seconds
from prime_sandboxes.commands import check_timeout
from prime_sandboxes.errors import (
    BackgroundJobLostError,
    CommandTimeoutError,
    SandboxNotRunningError,
)
from prime_sandboxes.job_output import JobOutputs
from prime_sandboxes.job_states import JobStates
from prime_sandboxes.models import (
    BackgroundJob,
    BackgroundJobStatus,
    BackgroundJobStatusSnapshot,
)

__all__ = ["AsyncSandboxJobs"]


class AsyncSandboxJobs(AsyncSandboxResource):
    """The part of the client that runs background jobs.

    Args:
        client: the connections.
    """

    _outputs: JobOutputs  # made by the client, which knows the limits

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._jobs = JobStates(self._transport, self._run_in_sandbox, self._error_context)

    async def start_background_job(
        self,
        sandbox_id: str,
        command: str,
        working_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> BackgroundJob:
        """Starts a command that goes on without a connection, until it or the sandbox ends.

        It is started once, also when the first answer is lost and the launch is sent again.
        After a cancellation it may run or not. It does not put off the sandbox's idle timeout.

        Follows the documented page "sandboxes/commands".

        Args:
            sandbox_id: a running sandbox.
            command: a bash command line.
            working_dir: where to run it, a path in the sandbox. If it is missing the job ends
                with exit code 1.
            env: further environment variables, with names that a shell can export.
            user: an account of the sandbox to run it as.

        Returns:
            A handle to ask for the job's state with, from any client; it pickles.

        Raises:
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            CommandTimeoutError: the sandbox did not answer; the job may run.
            APIError: any other failure. After an `APIConnectionError` the job may run.
        """
        check_id(sandbox_id)
        rules.check_launch(command, working_dir, env, user)
        job = rules.new_job(sandbox_id)
        await self._jobs.launch(job, rules.launch_spec(job, command, working_dir, env, user))
        return job

    async def get_background_job(
        self, sandbox_id: str, job: BackgroundJob, timeout: float | None = None
    ) -> BackgroundJobStatus:
        """Reads a job's state, and its output once it has ended.

        Follows the documented page "sandboxes/commands".

        Args:
            sandbox_id: the job's sandbox.
            job: its handle.
            timeout: seconds that each of the two looks into the sandbox may take; 30 for the
                state and 45 for the output by default.

        Returns:
            The state. That the output can't be read is no failure: `stdout_error` and
            `stderr_error` say why, and `exit_code` is there. Of a log of more than 10 MiB the
            end is read.

        Raises:
            BackgroundJobLostError: the job is gone without having left an exit code.
            SandboxNotRunningError: the sandbox is gone, and the job with it.
            ValueError: the handle is of another sandbox, or none; nothing was sent.
            APIError: any other failure.
        """
        snapshot = await self.get_background_job_status(sandbox_id, job, timeout)
        return await self._with_output(job, snapshot, timeout)

    async def get_background_job_status(
        self, sandbox_id: str, job: BackgroundJob, timeout: float | None = None
    ) -> BackgroundJobStatusSnapshot:
        """Reads a job's state without its output.

        Args:
            sandbox_id: the job's sandbox.
            job: its handle.
            timeout: seconds that the look into the sandbox may take; 30 by default.

        Raises:
            BackgroundJobLostError: the job is gone without having left an exit code.
            SandboxNotRunningError: the sandbox is gone, and the job with it.
            ValueError: the handle is of another sandbox, or none; nothing was sent.
            APIError: any other failure.
        """
        rules.check_job(sandbox_id, job)
        return await self._jobs.one(job, None if timeout is None else check_timeout(timeout))

    async def get_background_job_statuses(
        self, jobs: Sequence[BackgroundJob], timeout: float | None = None
    ) -> list[BackgroundJobStatusSnapshot]:
        """Reads the states of 1 to 100 jobs at once, of any sandboxes.

        A job that is lost reads as not completed here; `get_background_job_status` can tell.

        Args:
            jobs: different handles, as they were given out.
            timeout: seconds for the call; 30 by default.

        Returns:
            The states in the order of the handles.

        Raises:
            BatchStatusUnsupportedError: a sandbox is no VM.
            SandboxNotRunningError: a sandbox is gone, and its job with it.
            ValueError: a handle is repeated, changed or none; nothing was sent.
            APIError: any other failure, also if it is about one of the jobs.
        """
        handles = rules.check_jobs(jobs)
        return await self._jobs.many(handles, None if timeout is None else check_timeout(timeout))

    async def get_background_jobs(
        self, jobs: Sequence[BackgroundJob], timeout: float | None = None
    ) -> list[BackgroundJobStatus]:
        """Reads the states of 1 to 100 jobs at once, and the outputs of those that have ended.

        Args:
            jobs: different handles, as they were given out.
            timeout: seconds for the states, and for reading each output; 30 and 45 by default.

        Returns:
            The states in the order of the handles, as `get_background_job` returns them.

        Raises:
            BatchStatusUnsupportedError: a sandbox is no VM.
            SandboxNotRunningError: a sandbox is gone, and its job with it.
            ValueError: a handle is repeated, changed or none; nothing was sent.
            APIError: any other failure to read the states.
        """
        handles = list(jobs)
        snapshots = await self.get_background_job_statuses(handles, timeout)
        return await run_all(
            self._with_output(job, snapshot, timeout)
            for job, snapshot in zip(handles, snapshots, strict=True)
        )

    async def run_background_job(
        self,
        sandbox_id: str,
        command: str,
        timeout: float | None = 900,
        working_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        poll_interval: float = 3,
        *,
        user: str | None = None,
    ) -> BackgroundJobStatus:
        """Starts a background job and waits for its end, without holding a connection.

        All waits of a client share their questions to the platform. A cancellation ends the
        wait, not the job. About once a minute, later more rarely, the wait looks into the
        sandbox whether the job is lost; that puts off its idle timeout.

        Args:
            sandbox_id: a running sandbox.
            command: a bash command line.
            timeout: seconds that the job may run, above 0; then it is killed with its process
                group, if the sandbox answers. What it detached with ``setsid`` goes on. `None`
                is no limit.
            working_dir: where to run it, a path in the sandbox.
            env: further environment variables, with names that a shell can export.
            poll_interval: seconds from the first question to the second; they grow to 20.
            user: an account of the sandbox to run it as.

        Returns:
            The state with the output, as `get_background_job` returns it.

        Raises:
            CommandTimeoutError: the limit was reached; it holds the output so far.
            BackgroundJobLostError: the job is gone without having left an exit code.
            SandboxNotRunningError: the sandbox is gone, and the job with it.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure; the job may run.
        """
        limit = None if timeout is None else check_seconds("timeout", timeout)
        check_seconds("poll_interval", poll_interval)
        job = await self.start_background_job(sandbox_id, command, working_dir, env, user)
        deadline = None if limit is None else asyncio.get_running_loop().time() + limit
        try:
            snapshot = await self._jobs.wait(job, deadline, poll_interval)
        except PollTimeout as late:
            ended = await self._end_late(job)
            if ended is None:
                output = await self._outputs.of_now(job, None)
                raise CommandTimeoutError(
                    sandbox_id, command, limit or 0, output.stdout or "", output.stderr or ""
                ) from late.last_error
            snapshot = ended
        return await self._with_output(job, snapshot, None)

    async def _end_late(self, job: BackgroundJob) -> BackgroundJobStatusSnapshot | None:
        """Kills a job whose time is over; its state, if it has just ended by itself."""
        try:
            return await self._jobs.kill(job)
        except (SandboxNotRunningError, BackgroundJobLostError):
            raise
        except PrimeError:
            return None  # that its time is over says more than that it can't be killed

    async def _with_output(
        self, job: BackgroundJob, snapshot: BackgroundJobStatusSnapshot, timeout: float | None
    ) -> BackgroundJobStatus:
        if not snapshot.completed:
            return BackgroundJobStatus(job_id=job.job_id, completed=False)
        output = await self._outputs.of_finished(job, timeout)
        return output.status(snapshot)
