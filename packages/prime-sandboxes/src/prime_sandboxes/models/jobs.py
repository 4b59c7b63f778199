"""Background jobs: their handles, states and outputs."""

from __future__ import annotations

from typing import Literal

from prime_core.models import ResponseModel


class BackgroundJob(ResponseModel):
    """A handle on a background job. Follows the page "sandboxes/commands", "Background jobs".

    It holds names only: it pickles, and works with any client that can see the sandbox.

    Attributes:
        job_id: eight hexadecimal digits.
        sandbox_id: the sandbox that it runs in.
        stdout_log_file: where its standard output goes, a path in the sandbox.
        stderr_log_file: where its standard error goes.
        exit_file: where its exit code stands once it has ended.
    """

    job_id: str
    sandbox_id: str
    stdout_log_file: str
    stderr_log_file: str
    exit_file: str


class BackgroundJobStatus(ResponseModel):
    """The state of a background job, with its output once it has ended.

    Attributes:
        job_id: the job.
        completed: whether it has ended.
        exit_code: exit status of its command; `None` while it runs.
        stdout: standard output as text, bytes that are not UTF-8 as U+FFFD; of more than 10 MiB
            the last ones. `None` while the job runs, and where it could not be read.
        stderr: standard error, likewise.
        stdout_error: why `stdout` could not be read.
        stderr_error: why `stderr` could not be read.
        stdout_truncated: whether the beginning of `stdout` is missing.
        stderr_truncated: whether the beginning of `stderr` is missing.
    """

    job_id: str
    completed: bool
    exit_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None
    stdout_error: str | None = None
    stderr_error: str | None = None
    stdout_truncated: bool = False
    stderr_truncated: bool = False


class BackgroundJobStatusSnapshot(ResponseModel):
    """The state of a background job, without its output.

    Attributes:
        sandbox_id: its sandbox.
        job_id: the job.
        completed: whether it has ended.
        exit_code: exit status of its command; `None` while it runs.
    """

    sandbox_id: str
    job_id: str
    completed: bool
    exit_code: int | None = None


class BackgroundJobStatusLookupError(ResponseModel):
    """A background job whose state could not be looked up.

    Attributes:
        sandbox_id: its sandbox.
        job_id: the job.
        code: why: `NOT_FOUND`, `FORBIDDEN`, `MANAGED`, `NOT_VM`, `NOT_RUNNING`, `RUNTIME_ERROR`
            or a newer word.
        message: the same in words.
    """

    sandbox_id: str
    job_id: str
    code: (
        Literal["NOT_FOUND", "FORBIDDEN", "MANAGED", "NOT_VM", "NOT_RUNNING", "RUNTIME_ERROR"] | str
    )
    message: str


class BatchBackgroundJobStatusResponse(ResponseModel):
    """States of many background jobs: each job asked for stands in exactly one of the lists.

    Attributes:
        statuses: the states that could be read.
        errors: the jobs whose state could not be read.
    """

    statuses: list[BackgroundJobStatusSnapshot]
    errors: list[BackgroundJobStatusLookupError]
