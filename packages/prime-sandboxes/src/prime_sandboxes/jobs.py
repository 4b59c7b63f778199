"""Background jobs: what runs in the sandbox, and what its answers mean.

A job leaves three files and a folder in /tmp of its sandbox. The folder is made with mkdir,
which only one launch can win, so a launch may be sent again when its answer was lost. The job
writes its process id there, and in the end, in one step, its exit code. The names are those
that the platform's batch look-up reads.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence

from prime_core.errors import APIError, APIResponseError, PrimeError
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.arguments import check_id
from prime_sandboxes.commands import command_spec
from prime_sandboxes.errors import BackgroundJobLostError
from prime_sandboxes.models import (
    BackgroundJob,
    BackgroundJobStatusSnapshot,
    CommandResponse,
)

__all__ = [
    "KILL_COMMAND",
    "LAUNCH_COMMAND",
    "STATUS_COMMAND",
    "JobId",
    "check_job",
    "check_jobs",
    "check_launch",
    "check_standard",
    "check_started",
    "handle_of",
    "kill_spec",
    "launch_spec",
    "may_have_started",
    "new_job",
    "read_status",
    "status_spec",
]

MAX_JOBS_PER_REQUEST = 100

JobId = tuple[str, str]  # sandbox and job

_JOB_ID = re.compile(r"[0-9A-Fa-f]{8}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# How these commands appear in errors: their scripts say nothing to a user.
LAUNCH_COMMAND = "start a background job"
STATUS_COMMAND = "look at a background job"
KILL_COMMAND = "kill a background job"

# Arguments: launch folder, exit file, stdout log, stderr log, folder to work in, command,
# NAME=VALUE pairs. As arguments they need no quoting. The wrapper bash stays while the command
# runs, so that its command line tells that the job lives. With -m it leads a process group.
_JOB = """
trap '' HUP
echo "$$" >"$1/pid.new" && mv "$1/pid.new" "$1/pid" || exit 1
exit_file=$2
(
  trap - HUP
  cd -- "${5:-.}" || exit 1
  command=$6
  shift 6
  for variable; do export "${variable?}"; done
  exec /bin/bash -c "$command"
) >"$3" 2>"$4"
echo "$?" >"$exit_file.new" && mv "$exit_file.new" "$exit_file"
exit  # as the last command, mv would replace this shell
"""
_LAUNCH = """
job=$1
shift
if said=$(mkdir -- "$1" 2>&1); then
  set -m
  /bin/bash -c "$job" job "$@" </dev/null >/dev/null 2>&1 &
elif [[ ! -d $1 ]]; then
  echo "$said"
  exit 1
fi
for ((look = 0; look < 500; look++)); do
  if [[ -s $1/pid ]]; then echo started; exit 0; fi
  sleep 0.02
done
echo 'the job did not begin'
exit 1
"""
# Arguments: launch folder, exit file. A process shows an empty command line while it becomes
# another, so only several looks tell that a job is lost.
_FUNCTIONS = """
exec 2>/dev/null
ended() { [[ -s $2 ]] && echo "exit $(<"$2")"; }
lives() { pid=$(<"$1/pid") && line=$(<"/proc/$pid/cmdline") && [[ $line == *"$2"* ]]; }
lost() {
  for look in 1 2 3; do
    if [[ -s $2 ]] || lives "$@"; then return 1; fi
    sleep 0.05
  done
}
"""
_STATUS = (
    _FUNCTIONS
    + """
if lost "$@"; then echo lost; else ended "$@" || echo running; fi
"""
)
# The exit code of a killed job is written for it, unless it has written its own.
_KILL = (
    _FUNCTIONS
    + """
ended "$@" && exit
if ! lost "$@" && lives "$@"; then
  kill -KILL -- "-$pid"
  echo 137 >"$2.killed" && ln "$2.killed" "$2"
  rm -f "$2.killed"
  echo killed
else
  ended "$@" || echo lost
fi
"""
)


def new_job(sandbox_id: str) -> BackgroundJob:
    """A handle for a job that is to be started."""
    return handle_of(sandbox_id, secrets.token_hex(4))


def handle_of(sandbox_id: str, job_id: str) -> BackgroundJob:
    """The handle of a job whose files are where the platform looks for them."""
    stem = f"/tmp/job_{job_id}"
    return BackgroundJob(
        job_id=job_id,
        sandbox_id=sandbox_id,
        stdout_log_file=f"{stem}.stdout.log",
        stderr_log_file=f"{stem}.stderr.log",
        exit_file=f"{stem}.exit",
    )


def _launch_folder(job: BackgroundJob) -> str:
    return f"/tmp/job_{job.job_id}.launch"


def check_launch(
    command: str, working_dir: str | None, env: Mapping[str, str] | None, user: str | None
) -> None:
    """Checks what a job is to run.

    Raises:
        ValueError: as for a command, or an environment name that no shell can export.
    """
    command_spec(command, working_dir, env, user)
    for name in env or {}:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"a name in env is letters, digits and '_', not {name!r}")


def launch_spec(
    job: BackgroundJob,
    command: str,
    working_dir: str | None,
    env: Mapping[str, str] | None,
    user: str | None,
) -> pb.CommandSpec:
    """The command that starts a job, once however often it is sent."""
    # Started elsewhere than in a default folder that may be missing, if that is possible.
    folder = "/" if working_dir is not None and working_dir.startswith("/") else None
    words = [_JOB, _launch_folder(job), job.exit_file, job.stdout_log_file, job.stderr_log_file]
    variables = [f"{name}={value}" for name, value in (env or {}).items()]
    return _spec(_LAUNCH, [*words, working_dir or "", command, *variables], folder, user)


def status_spec(job: BackgroundJob) -> pb.CommandSpec:
    """The command that tells a job's state; `read_status` reads its answer."""
    return _spec(_STATUS, [_launch_folder(job), job.exit_file], "/", None)


def kill_spec(job: BackgroundJob) -> pb.CommandSpec:
    """The command that kills a job's process group; it says ``killed``, or the job's state."""
    return _spec(_KILL, [_launch_folder(job), job.exit_file], "/", None)


def _spec(
    script: str, arguments: Sequence[str], folder: str | None, user: str | None
) -> pb.CommandSpec:
    spec = command_spec(script, folder, None, user)
    spec.args.extend(["prime-job", *arguments])
    return spec


def read_status(job: BackgroundJob, answer: CommandResponse) -> BackgroundJobStatusSnapshot:
    """Reads what the status command said.

    Raises:
        BackgroundJobLostError: the job ended without leaving its exit code.
        APIError: the answer makes no sense.
    """
    word, _, code = answer.stdout.strip().partition(" ")
    if word == "running":
        return BackgroundJobStatusSnapshot(
            sandbox_id=job.sandbox_id, job_id=job.job_id, completed=False
        )
    if word == "lost":
        raise BackgroundJobLostError(job.sandbox_id, job.job_id)
    if word == "exit" and re.fullmatch(r"[0-9]{1,3}", code):
        return BackgroundJobStatusSnapshot(
            sandbox_id=job.sandbox_id, job_id=job.job_id, completed=True, exit_code=int(code)
        )
    said = (answer.stdout or answer.stderr)[:200]
    raise APIResponseError(f"The state of job {job.job_id} can't be read: {said!r}")


def check_job(sandbox_id: str, job: BackgroundJob) -> None:
    """Checks a handle that is passed with its sandbox.

    Raises:
        TypeError: it is no handle.
        ValueError: it can't be one, or is of another sandbox.
    """
    check_id(sandbox_id)
    _check_handle(job)
    if job.sandbox_id != sandbox_id:
        raise ValueError(f"job {job.job_id} runs in sandbox {job.sandbox_id}, not in {sandbox_id}")


def _check_handle(job: BackgroundJob) -> None:
    if not isinstance(job, BackgroundJob):
        raise TypeError(f"a job is a BackgroundJob, not {type(job).__name__}")
    check_id(job.sandbox_id)
    if not _JOB_ID.fullmatch(job.job_id):
        raise ValueError(f"job_id is eight hexadecimal digits, not {job.job_id!r}")
    paths = (job.stdout_log_file, job.stderr_log_file, job.exit_file)
    if not all(path and "\0" not in path for path in paths):
        raise ValueError("a path of the job is empty or holds a NUL character")


def check_jobs(jobs: Sequence[BackgroundJob]) -> list[BackgroundJob]:
    """Checks handles for a look at many jobs at once.

    Raises:
        TypeError: something is no handle.
        ValueError: none or more than 100, one twice, or one whose files are elsewhere.
    """
    handles = list(jobs)
    if not 1 <= len(handles) <= MAX_JOBS_PER_REQUEST:
        raise ValueError(f"jobs holds 1 to {MAX_JOBS_PER_REQUEST} handles, not {len(handles)}")
    for job in handles:
        _check_handle(job)
        check_standard(job)
    if len({(job.sandbox_id, job.job_id) for job in handles}) < len(handles):
        raise ValueError("a job is repeated in jobs")
    return handles


def check_standard(job: BackgroundJob) -> None:
    """Checks that the platform's batch look-up finds a job.

    Raises:
        ValueError: its files are elsewhere.
    """
    if job.model_dump() != handle_of(job.sandbox_id, job.job_id).model_dump():
        raise ValueError(
            f"the handle of job {job.job_id} was changed; use get_background_job_status for it"
        )


def check_started(answer: CommandResponse) -> None:
    """Checks what the launch said.

    Raises:
        APIError: the job was not started.
    """
    if answer.exit_code != 0 or answer.stdout.strip() != "started":
        said = (answer.stdout + answer.stderr).strip()[:500]
        raise APIError(f"The background job was not started: {said or 'no acknowledgement'}")


def may_have_started(error: PrimeError) -> bool:
    """Whether a failed launch may be sent again: its outcome is open, or it never arrived."""
    return isinstance(error, APIError) and (
        error.status_code is None or error.status_code in (408, 429, 500, 502, 503, 504, 524)
    )
