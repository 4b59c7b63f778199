"""Running a command inside a sandbox that exists: join its namespaces, give up power, execute.

Between joining and executing, this process can see the sandbox's files and holds the platform's
rights. So it opens no file and imports no module of the sandbox's, gives up every capability in
the step after joining, and cannot be looked into by the sandbox's processes (see
`kernel.hide_from_peers`, which the launcher has called).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
import termios
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prime_local.sandboxes.isolation import kernel
from prime_local.sandboxes.isolation.cgroups import PROCESSES
from prime_local.sandboxes.isolation.view import WORKSPACE

_FILES = 4096
_DEFAULT_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGPIPE,
)


class _CannotRun(Exception):
    """The command names a program or a folder that is not there."""


class EntryRefused(Exception):
    """A process could not get into the sandbox."""


@dataclass(frozen=True)
class Program:
    """A command to run.

    Args:
        file_bytes: the size that no file it writes may exceed.
        account: uid, gid and groups to run as; None for root.
        building: whether it may do to files and accounts what builds do.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None
    file_bytes: int
    account: tuple[int, int, Sequence[int]] | None = None
    building: bool = False


@dataclass(frozen=True)
class Streams:
    """Descriptors of the command's input and output, and of where its start is reported.

    `terminal` says that the first three are one terminal, to be its own.
    """

    stdin: int
    stdout: int
    stderr: int
    status: int
    terminal: bool


class Entrance:
    """Starts processes in sandboxes."""

    def __init__(self) -> None:
        self._capabilities = kernel.Capabilities()

    def seal(self, inmate: int) -> None:
        """Forbid a sandbox to make user namespaces: in a new one it would have capabilities.

        Args:
            inmate: a pidfd of one of its processes.

        Raises:
            EntryRefused: it could not be done.
        """

        def forbid() -> bytes:
            kernel.setns(inmate, kernel.CLONE_NEWUSER)
            # Still this machine's /proc; the file is that of the namespace that writes.
            descriptor = os.open("/proc/sys/user/max_user_namespaces", os.O_WRONLY)
            os.write(descriptor, b"0")
            return b""

        _in_child(forbid)

    def start(
        self, inmate: int, join_groups: Callable[[], None], program: Program, streams: Streams
    ) -> int:
        """Start a command; the caller becomes its parent.

        Its start is reported on `streams.status`: first `pid N` with the process id that it has
        inside, then nothing more, or a Connect code and a message when it cannot be executed.

        Args:
            inmate: a pidfd of one of the sandbox's processes.
            join_groups: moves the calling process into the command's control groups.
            program: what to run.
            streams: of the command; they stay open here.

        Returns the process id outside.

        Raises:
            EntryRefused: no process could be made in the sandbox.
        """

        def enter() -> bytes:
            join_groups()
            kernel.forget_keys()
            kernel.setns(inmate, kernel.EVERY_NAMESPACE)
            kept = kernel.BUILD_CAPABILITIES if program.building and not program.account else ()
            self._capabilities.drop(lambda: _become(program.account), kept)
            # A new pid namespace holds only from the next child on, and that child's parent
            # ends at once, so that the launcher adopts it.
            child = os.fork()
            if child == 0:
                _run(program, streams)
            return str(child).encode()

        return int(_in_child(enter))


def _in_child(work: Callable[[], bytes]) -> bytes:
    """Do something in a process of its own, which ends; returns what it returned."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"!unknown error"
        try:
            answer = b"=" + work()
        except BaseException as error:
            answer = f"!{error}".encode(errors="replace")
        finally:
            os.write(sender, answer)
            os._exit(0)
    os.close(sender)
    # Not up to the end of the pipe: a command that was made in `work` may hold it open.
    answer = os.read(receiver, 65536)
    os.close(receiver)
    os.waitpid(child, 0)
    if not answer.startswith(b"="):
        raise EntryRefused(answer[1:].decode(errors="replace"))
    return answer[1:]


def _become(account: tuple[int, int, Sequence[int]] | None) -> None:
    if account is not None:
        uid, gid, groups = account
        os.setgroups(list(groups))
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def _run(program: Program, streams: Streams) -> None:
    """Become the command; does not return."""
    try:
        os.setsid()
        if streams.terminal:
            fcntl.ioctl(streams.stdin, termios.TIOCSCTTY, 0)
        # What Python or our starter ignores would stay ignored in the program. SIGXFSZ shall: a
        # file that grows too large is an error, as on a full disk, and no reason to die.
        for number in _DEFAULT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        _limit(program.file_bytes)
        os.umask(0o022)
        _change_folder(program.cwd)
        for target, source in enumerate((streams.stdin, streams.stdout, streams.stderr)):
            os.dup2(source, target)
        os.write(streams.status, b"pid %d\n" % os.getpid())
        _execute(program)
    except _CannotRun as error:
        _report(streams.status, f"invalid_argument {error}")
    except BaseException as error:
        _report(streams.status, f"resource_exhausted cannot start the command: {error}")
    finally:
        os._exit(127)


def _report(status: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(status, text.encode(errors="surrogateescape"))


def _limit(file_bytes: int) -> None:
    wanted = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_NPROC, PROCESSES),
        (resource.RLIMIT_FSIZE, file_bytes),
    )
    for limit, value in wanted:
        _, hard = resource.getrlimit(limit)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(limit, (value, value))


def _change_folder(cwd: str | None) -> None:
    try:
        os.chdir(WORKSPACE)
    except OSError:
        os.chdir("/")
    if cwd is not None:
        try:
            os.chdir(cwd)
        except OSError as error:
            raise _CannotRun(f"no such directory: {cwd}") from error


def _execute(program: Program) -> None:
    argv, env = list(program.argv), dict(program.env)
    for path in _candidates(argv[0], env.get("PATH", "")):
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            try:
                os.execve(path, argv, env)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise _CannotRun(f"cannot execute {path}: {error.strerror}") from error
                # A script that does not name its interpreter is the shell's.
                os.execve("/bin/sh", ["sh", path, *argv[1:]], env)
    raise _CannotRun(f"no such program: {argv[0]}")


def _candidates(name: str, path: str) -> list[str]:
    return [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in path.split(":")]
