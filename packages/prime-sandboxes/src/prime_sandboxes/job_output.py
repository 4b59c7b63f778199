"""Reading what finished background jobs wrote: bounded in parallel, in size and in memory."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from prime_core.errors import APIResponseError, PrimeError
from prime_core.per_loop import PerLoop
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.arguments import check_count
from prime_sandboxes.commands import command_spec
from prime_sandboxes.models import (
    BackgroundJob,
    BackgroundJobStatus,
    BackgroundJobStatusSnapshot,
    CommandResponse,
)

__all__ = ["JobOutput", "JobOutputs", "OutputLimits"]

# The most of each log that is read: its end.
MOST_BYTES = 10 * 1024 * 1024
READ_TIMEOUT = 45.0
READ_COMMAND = "read the output of a background job"

# Arguments: stdout log, stderr log, most bytes. Both logs travel in one answer, each on its own
# stream. The exit code is 64 plus what is to be said of them: that the beginning of stdout (1)
# or stderr (2) is missing, that stdout (4) or stderr (8) can't be read. A log that is not there
# is an empty one.
_READ = """
code=64
show() {
  [[ -e $1 ]] || return
  if [[ -f $1 ]] && size=$(stat -Lc %s -- "$1") && tail -c "$2" -- "$1"; then
    if ((size > $2)); then code=$((code + $3)); fi
  else
    code=$((code + $4))
  fi 2>/dev/null
}
show "$1" "$3" 1 4
show "$2" "$3" 2 8 >&2
exit "$code"
"""
_SAID = range(64, 80)

Run = Callable[[str, str, pb.CommandSpec, float], Awaitable[CommandResponse]]


@dataclass(frozen=True)
class OutputLimits:
    """How much output is read and kept at once.

    Attributes:
        concurrency: reads under way on an event loop, at least 1.
        queue_size: at least 1; accepted for compatibility, since waiting costs next to nothing.
        cache_bytes: bytes of memory for output that was read, 0 or more.
    """

    concurrency: int = 20
    queue_size: int = 200
    cache_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        check_count("background_job_output_concurrency", self.concurrency, least=1)
        check_count("background_job_output_queue_size", self.queue_size, least=1)
        name, value = "background_job_output_cache_bytes", self.cache_bytes
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is a number of bytes, not {value!r}")
        if value < 0:
            raise ValueError(f"{name} is 0 or more, not {value!r}")


@dataclass(frozen=True)
class JobOutput:
    """What a job wrote, as far as it could be read; as in `BackgroundJobStatus`."""

    stdout: str | None = None
    stderr: str | None = None
    stdout_error: str | None = None
    stderr_error: str | None = None
    stdout_truncated: bool = False
    stderr_truncated: bool = False

    @property
    def complete(self) -> bool:
        return self.stdout is not None and self.stderr is not None

    @property
    def memory(self) -> int:
        """Bytes that it takes."""
        return sys.getsizeof(self.stdout) + sys.getsizeof(self.stderr)

    def status(self, snapshot: BackgroundJobStatusSnapshot) -> BackgroundJobStatus:
        """The whole state of a finished job."""
        return BackgroundJobStatus(
            job_id=snapshot.job_id, completed=True, exit_code=snapshot.exit_code, **vars(self)
        )


class JobOutputs:
    """Reads the output of jobs, and keeps that of finished ones, which changes no more.

    Args:
        run: runs a command in a sandbox within so many seconds.
        limits: of reads in parallel and of memory.
    """

    def __init__(self, run: Run, limits: OutputLimits) -> None:
        self.limits = limits
        self._run = run
        self._turns = PerLoop(lambda: asyncio.Semaphore(limits.concurrency))
        self._kept: OrderedDict[tuple[str, ...], JobOutput] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()  # a client may work on several event loops

    async def of_finished(self, job: BackgroundJob, timeout: float | None) -> JobOutput:
        """The output of a finished job; never fails.

        Args:
            job: the handle.
            timeout: seconds for reading, once its turn has come; 45 by default.
        """
        key = (job.sandbox_id, job.job_id, job.stdout_log_file, job.stderr_log_file)
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        output = await self.of_now(job, timeout)
        if output.complete:
            self._keep(key, output)
        return output

    async def of_now(self, job: BackgroundJob, timeout: float | None) -> JobOutput:
        """What a job has written by now; never fails."""
        spec = command_spec(_READ, "/", None, None)
        spec.args.extend(["prime-job", job.stdout_log_file, job.stderr_log_file, str(MOST_BYTES)])
        try:
            async with self._turns.get():
                answer = await self._run(
                    job.sandbox_id, READ_COMMAND, spec, timeout or READ_TIMEOUT
                )
            return _read(answer)
        except PrimeError as error:
            return JobOutput(stdout_error=str(error), stderr_error=str(error))

    def clear(self) -> None:
        """Forgets what was read."""
        with self._lock:
            self._kept.clear()
            self._kept_bytes = 0

    def _keep(self, key: tuple[str, ...], output: JobOutput) -> None:
        if output.memory > self.limits.cache_bytes:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = output
            self._kept_bytes += output.memory
            while self._kept_bytes > self.limits.cache_bytes:
                self._kept_bytes -= self._kept.popitem(last=False)[1].memory


def _read(answer: CommandResponse) -> JobOutput:
    """Takes the two logs out of an answer.

    Raises:
        APIResponseError: it is none of the script's.
    """
    if answer.exit_code not in _SAID:
        raise APIResponseError(f"The logs can't be read: exit code {answer.exit_code}")
    said = answer.exit_code
    cannot = "The log can't be read in the sandbox."
    stdout, stderr = not said & 4, not said & 8  # whether they could be read
    return JobOutput(
        stdout=_text(answer.stdout, cut=bool(said & 1)) if stdout else None,
        stderr=_text(answer.stderr, cut=bool(said & 2)) if stderr else None,
        stdout_error=None if stdout else cannot,
        stderr_error=None if stderr else cannot,
        stdout_truncated=bool(said & 1),
        stderr_truncated=bool(said & 2),
    )


def _text(text: str, *, cut: bool) -> str:
    """The text without the rest of a character that the cut went through."""
    return re.sub("^\ufffd{1,3}", "", text) if cut else text
