"""Background jobs of a client: started once, looked at many at a time, waited for."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence

from prime_core.concurrency import run_all
from prime_core.errors import APIError, APIResponseError, PrimeError
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, PollTimeout, close_schedules
from prime_core.transport import AsyncTransport
from prime_sandboxes import jobs
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.commands import ReadContext
from prime_sandboxes.errors import (
    BatchStatusUnsupportedError,
    CommandTimeoutError,
    not_running,
)
from prime_sandboxes.job_output import Run
from prime_sandboxes.jobs import JobId
from prime_sandboxes.models import (
    TERMINAL_STATUSES,
    BackgroundJob,
    BackgroundJobStatusLookupError,
    BackgroundJobStatusSnapshot,
    BatchBackgroundJobStatusResponse,
)
from prime_sandboxes.operations import BATCH_GET_BACKGROUND_JOB_STATUSES
from prime_sandboxes.waiting import is_transient

__all__ = ["JobStates"]

COMMAND_TIMEOUT = 30.0
BATCH_TIMEOUT = 30.0
LAUNCH_PAUSES = (0.5, 1.0)
LONGEST_INTERVAL = 20.0
# A wait looks from time to time whether its job is lost, which only the sandbox can tell.
FIRST_CHECK = 60.0
LONGEST_CHECK = 300.0
# How many launches, and how many looks into sandboxes, are under way at once on an event loop:
# each is a connection, and what it costs to start thousands would hold up the loop.
PARALLEL_LAUNCHES = 100
PARALLEL_LOOKS = 20

# What may be otherwise the next time, while the sandbox lives.
_PASSING_CODES = frozenset({"NOT_RUNNING", "RUNTIME_ERROR"})

Snapshot = BackgroundJobStatusSnapshot
States = dict[JobId, Snapshot | PrimeError]


class JobStates:
    """Starts, looks at and waits for the background jobs of a client.

    Args:
        transport: the client's.
        run: runs a command in a sandbox within so many seconds.
        read_context: reads a sandbox's state as far as it can be had.
    """

    def __init__(self, transport: AsyncTransport, run: Run, read_context: ReadContext) -> None:
        self._transport = transport
        self._run = run
        self._read_context = read_context
        self._batch_route = True
        self._launches = PerLoop(lambda: asyncio.Semaphore(PARALLEL_LAUNCHES))
        self._turns = PerLoop(lambda: asyncio.Semaphore(PARALLEL_LOOKS))
        self._schedules = PerLoop(lambda: PollSchedule(self._look, transient=is_transient))

    def close(self) -> None:
        """Ends every wait with a RuntimeError."""
        close_schedules(self._schedules)

    async def launch(self, job: BackgroundJob, spec: pb.CommandSpec) -> None:
        """Starts a job, once: a launch whose answer was lost is sent again.

        Raises:
            SandboxNotRunningError: the sandbox is gone.
            APIError: the job was not started, or the last answer was lost too.
            CommandTimeoutError: the sandbox did not answer in time.
        """
        for pause in (*LAUNCH_PAUSES, None):
            try:
                async with self._launches.get():
                    answer = await self._run(
                        job.sandbox_id, jobs.LAUNCH_COMMAND, spec, COMMAND_TIMEOUT
                    )
                break
            except (APIError, CommandTimeoutError) as error:
                if pause is None or not jobs.may_have_started(error):
                    raise
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
        jobs.check_started(answer)

    async def one(self, job: BackgroundJob, timeout: float | None) -> Snapshot:
        """The state of a job, as its sandbox tells it.

        Raises:
            BackgroundJobLostError: the job is gone without exit code.
        """
        answer = await self._run(
            job.sandbox_id, jobs.STATUS_COMMAND, jobs.status_spec(job), timeout or COMMAND_TIMEOUT
        )
        return jobs.read_status(job, answer)

    async def many(self, handles: Sequence[BackgroundJob], timeout: float | None) -> list[Snapshot]:
        """The states of at most 100 different jobs, in their order.

        Raises:
            BatchStatusUnsupportedError: a sandbox that no batch look-up can look into.
            SandboxNotRunningError: the sandbox of a job is gone.
            APIError: the state of a job can't be read.
        """
        states = await self._read_many([(job.sandbox_id, job.job_id) for job in handles], timeout)
        if states is None:
            return await run_all(self._in_turn(job, timeout) for job in handles)
        found = []
        for job in handles:
            state = states.get((job.sandbox_id, job.job_id))
            if state is None:
                raise APIResponseError(f"The answer says nothing about job {job.job_id}")
            if isinstance(state, PrimeError):
                raise state
            found.append(state)
        return found

    async def wait(self, job: BackgroundJob, deadline: float | None, interval: float) -> Snapshot:
        """Waits for the end of a job.

        Args:
            job: a handle as it was given out.
            deadline: loop time, or None.
            interval: seconds from the first question to the second.

        Raises:
            PollTimeout: the deadline came first.
            BackgroundJobLostError: the job is gone without exit code.
            SandboxNotRunningError: the sandbox is gone.
            APIError: the state can't be read.
        """
        loop = asyncio.get_running_loop()
        key = (job.sandbox_id, job.job_id)
        longest, check = max(interval, LONGEST_INTERVAL), FIRST_CHECK
        while True:
            until = loop.time() + check * random.uniform(0.75, 1.25)
            try:
                return await self._schedules.get().wait(
                    key,
                    lambda snapshot: snapshot.completed,
                    until if deadline is None else min(until, deadline),
                    interval=interval,
                    longest=longest,
                )
            except PollTimeout:
                if deadline is not None and deadline <= until:
                    raise
            _, state = await self._look_at(key)
            if isinstance(state, PrimeError):
                raise state
            if state is not None and state.completed:
                return state
            interval, check = longest, min(check * 2, LONGEST_CHECK)

    async def kill(self, job: BackgroundJob) -> Snapshot | None:
        """Kills a job's process group.

        Returns:
            The job's state if it had ended by itself, None if it was killed.

        Raises:
            PrimeError: it can't be told, or is lost.
        """
        answer = await self._run(
            job.sandbox_id, jobs.KILL_COMMAND, jobs.kill_spec(job), COMMAND_TIMEOUT
        )
        return None if answer.stdout.strip() == "killed" else jobs.read_status(job, answer)

    async def _look(self, keys: list[JobId]) -> Mapping[JobId, Snapshot | Exception]:
        """States for the poll schedule; a job that is left out is asked for again."""
        states = await self._read_many(keys, None)
        if states is None:
            pairs = await run_all(self._look_at(key) for key in keys)
            return {key: state for key, state in pairs if state is not None}
        return {key: state for key, state in states.items() if not _may_pass(state)}

    async def _look_at(self, key: JobId) -> tuple[JobId, Snapshot | PrimeError | None]:
        """The state of one job for a wait, None if that can't be told now."""
        try:
            return key, await self._in_turn(jobs.handle_of(*key), None)
        except PrimeError as error:
            passing = isinstance(error, CommandTimeoutError) or is_transient(error)
            return key, None if passing else error

    async def _in_turn(self, job: BackgroundJob, timeout: float | None) -> Snapshot:
        """The state of one of many jobs: their commands must not use up the connections."""
        async with self._turns.get():
            return await self.one(job, timeout)

    async def _read_many(self, keys: list[JobId], timeout: float | None) -> States | None:
        """What the batch look-up says, or None where there is none."""
        if not self._batch_route:
            return None
        # Not a model for each key: of 10,000 jobs they would hold up the loop.
        named = [{"sandbox_id": sandbox_id, "job_id": job_id} for sandbox_id, job_id in keys]
        try:
            answer = await self._transport.request(
                BATCH_GET_BACKGROUND_JOB_STATUSES,
                BatchBackgroundJobStatusResponse,
                body=json.dumps({"jobs": named}).encode(),
                timeout=timeout or BATCH_TIMEOUT,
            )
        except APIError as error:
            if error.status_code not in (404, 405):
                raise
            self._batch_route = False
            return None
        states: States = {
            (item.sandbox_id, item.job_id): _complete(item) for item in answer.statuses
        }
        failures = await run_all(self._failure(item) for item in answer.errors)
        keys_failed = [(item.sandbox_id, item.job_id) for item in answer.errors]
        states.update(zip(keys_failed, failures, strict=True))
        return states

    async def _failure(self, item: BackgroundJobStatusLookupError) -> PrimeError:
        """The error of a job whose state could not be looked up."""
        text = f"The state of job {item.job_id} can't be read: {item.code}: {item.message}"
        if item.code == "NOT_VM":
            return BatchStatusUnsupportedError(text, code=item.code)
        context = await self._read_context(item.sandbox_id)
        if context.status in TERMINAL_STATUSES:
            return not_running(
                item.sandbox_id, context.status, context.error_type, context.error_message
            )
        if item.code == "NOT_FOUND" and context.status is None:
            return not_running(item.sandbox_id, None, "SANDBOX_NOT_FOUND", item.message)
        return APIError(text, code=item.code, operation=BATCH_GET_BACKGROUND_JOB_STATUSES.id)


def _complete(snapshot: Snapshot) -> Snapshot | PrimeError:
    """A state as it is, or the error that a finished job has no exit code."""
    if not snapshot.completed or snapshot.exit_code is not None:
        return snapshot
    return APIResponseError(f"Job {snapshot.job_id} is said to have ended without exit code")


def _may_pass(state: Snapshot | PrimeError) -> bool:
    return isinstance(state, APIError) and state.code in _PASSING_CODES
