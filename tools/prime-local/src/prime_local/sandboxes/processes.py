"""Process mode: a sandbox is a private folder, its commands are real processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.isolation.view import PYTHON, SEARCH_PATH
from prime_local.sandboxes.job_files import JobFiles
from prime_local.sandboxes.removal import remove_tree
from prime_local.sandboxes.terminals import Stdin, TerminalSize
from prime_local.sandboxes.trees import TREE_VARIABLE, TreeKiller

if TYPE_CHECKING:
    from prime_local.sandboxes.isolation.base import Box, OnTrouble
    from prime_local.sandboxes.isolation.filling import Filler

_CHUNK_BYTES = 32 * 1024
_DRAIN_SECONDS = 0.2
# dash and busybox limit processes with -p, bash with -u. A lower limit of ours stays, silently.
_LAUNCHER = """\
{ ulimit -c 0; ulimit -n 4096; ulimit -u 4096 || ulimit -p 4096; } 2>/dev/null
exec "$@"
"""


@dataclass(frozen=True)
class Folders:
    """The private folders of a sandbox."""

    root: Path
    workspace: Path
    home: Path
    temporary: Path

    @classmethod
    def below(cls, root: Path) -> Folders:
        return cls(root, root / "workspace", root / "home", root / "tmp")

    def create(self) -> None:
        for folder in (self.workspace, self.home, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)


def account_name() -> str:
    """Return the name of the account that commands run under."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def install_interpreter(folder: Path) -> Path:
    """Lay out a bare virtual environment: the standard library and no other package.

    The interpreter that runs the platform would show the packages around it to every sandbox.

    Returns the folder that holds `python` and `python3`.
    """
    base = getattr(sys, "_base_executable", "")
    interpreter = Path(base if os.access(base, os.X_OK) else sys.executable).resolve()
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    configuration = f"home = {interpreter.parent}\ninclude-system-site-packages = false\n"
    (folder / "pyvenv.cfg").write_text(configuration, encoding="utf-8")
    for name in ("python", "python3"):
        (programs / name).unlink(missing_ok=True)
        (programs / name).symlink_to(interpreter)
    return programs


class ProcessMode:
    """Starts processes inside sandboxes' folders; they share this machine with everything else.

    Args:
        root: folder for the sandboxes' folders and their Python interpreter.
        executor: threads for what would block the event loop.
        trees: finds a command's children.
        filler: puts in what a sandbox starts with.
    """

    def __init__(self, root: Path, executor: Executor, trees: TreeKiller, filler: Filler) -> None:
        self.name: Literal["process"] = "process"
        self.links = None
        self._filler = filler
        self._root = root
        self._bin = install_interpreter(root / "python")
        self._executor = executor
        self._trees = trees
        self._account = account_name()
        self._job_files = JobFiles()

    def workspace(self, sandbox_id: str) -> str:
        return str(self.folders(sandbox_id).workspace)

    def parts(self, sandbox_id: str) -> Mapping[str, Path]:
        folders = self.folders(sandbox_id)
        own = (folders.workspace, folders.home, folders.temporary)
        return {folder.name: folder for folder in own}

    def volume(self, sandbox_id: str, name: str) -> Path:
        return self.folders(sandbox_id).root / "volumes" / name

    def mount_refusal(self, path: str) -> str | None:
        return "without isolation a path is this machine's: use --isolation full or bwrap"

    def open(self, box: Box, on_trouble: OnTrouble) -> Awaitable[None] | None:
        """Fill the folders; without files to start with they are made for the first command."""
        if box.files is None:
            return None
        return self._filler.fill(
            box, self.parts(box.sandbox_id), lambda name: self.volume(box.sandbox_id, name)
        )

    def folders(self, sandbox_id: str) -> Folders:
        return Folders.below(self._root / "sandboxes" / sandbox_id)

    def environment(self, sandbox_id: str, extra: Mapping[str, str], tree: str) -> dict[str, str]:
        """Return a command's whole environment; nothing of the platform's own leaks into it."""
        folders = self.folders(sandbox_id)
        # An image's PATH names the interpreter where isolated sandboxes have it.
        path = extra.get("PATH", SEARCH_PATH).replace(f"{PYTHON}/bin", str(self._bin))
        return {
            "HOME": str(folders.home),
            "USER": self._account,
            "LOGNAME": self._account,
            "TMPDIR": str(folders.temporary),
            "LANG": "C.UTF-8",
            **extra,
            "PATH": path,
            "PRIME_LOCAL_SANDBOX": sandbox_id,
            TREE_VARIABLE: tree,
        }

    async def launch(
        self, sandbox_id: str, command: Command, tree: str, stdin: Stdin = "none"
    ) -> RunningProcess:
        """Start a command.

        Args:
            sandbox_id: whose folders it works in.
            command: what to run; its directory is the sandbox's own when it names none.
            tree: the mark by which `TreeKiller` finds it and its children.
            stdin: what it reads.

        Raises:
            CommandFault: `invalid_argument` for an unknown account, directory or program.
        """
        self._job_files.note(sandbox_id, command.argv)
        loop = asyncio.get_running_loop()
        return _follow(
            *await loop.run_in_executor(
                self._executor, self._spawn, sandbox_id, command, tree, stdin
            )
        )

    def file_roots(self, sandbox_id: str, *, writing: bool) -> tuple[str, ...]:
        own = os.path.realpath(self.folders(sandbox_id).root)
        # What commands leave in this machine's /tmp can be read, but nothing there overwritten.
        return (own,) if writing else (own, os.path.realpath("/tmp"))

    async def kill(self, sandbox_id: str, tree: str) -> None:
        await self._trees.kill(tree)

    async def end(self, sandbox_id: str, tree: str) -> None:
        self._filler.stop(sandbox_id)
        await self._trees.kill(tree)

    async def remove(self, sandbox_id: str) -> None:
        """Delete a sandbox's folders."""

        def delete() -> None:
            remove_tree(self.folders(sandbox_id).root)
            self._job_files.remove(sandbox_id)

        await asyncio.get_running_loop().run_in_executor(self._executor, delete)

    async def close(self) -> None:
        """Do nothing: this mode holds nothing."""

    def _spawn(
        self, sandbox_id: str, command: Command, tree: str, stdin: Stdin
    ) -> tuple[subprocess.Popen[bytes], int | None]:
        """Return the process, and the outer end of its terminal if it has one."""
        folders = self.folders(sandbox_id)
        if command.user is not None and command.user != self._account:
            raise CommandFault("invalid_argument", f"unknown user {command.user!r}")
        environment = self.environment(sandbox_id, command.env, tree)
        try:
            folders.create()
            directory = folders.workspace / (command.cwd or "")
            if not directory.is_dir():
                raise CommandFault("invalid_argument", f"no such directory: {command.cwd}")
            if _find_program(command.argv[0], directory, environment["PATH"]) is None:
                raise CommandFault("invalid_argument", f"no such program: {command.argv[0]}")
            if isinstance(stdin, TerminalSize):
                return stdin.spawn(_LAUNCHER, command.argv, directory, environment)
            process = subprocess.Popen(
                ["/bin/sh", "-c", _LAUNCHER, "sh", *command.argv],
                cwd=directory,
                env=environment,
                stdin=subprocess.PIPE if stdin == "pipe" else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
            return process, None
        except (OSError, ValueError) as error:
            code = "resource_exhausted" if isinstance(error, OSError) else "invalid_argument"
            raise CommandFault(code, f"cannot start the command: {error}") from error


def _find_program(name: str, directory: Path, path: str) -> str | None:
    return shutil.which(directory / name if "/" in name else name, path=path)


class RunningProcess:
    """A started process: its output as it comes, its exit, and signals to its group.

    Args:
        pid: its process id, as its sandbox knows it.
        stdout: what it writes to.
        stderr: what it writes to, or None where that is no stream of its own.
        exited: gets its return code, negative for a signal.
        signal_group: signals its process group; called only until it has exited.
        stdin: what it reads from, if anything; whoever takes it closes it.
    """

    def __init__(
        self,
        pid: int,
        stdout: FileIO,
        stderr: FileIO | None,
        exited: asyncio.Future[int],
        signal_group: Callable[[signal.Signals], None],
        stdin: FileIO | None = None,
    ) -> None:
        self.pid = pid
        self.exited = exited
        self.stdin = stdin
        self._files: dict[str, FileIO | None] = {"stdout": stdout, "stderr": stderr}
        self._signal_group = signal_group

    @classmethod
    def in_terminal(
        cls,
        pid: int,
        outer: int,
        exited: asyncio.Future[int],
        signal_group: Callable[[signal.Signals], None],
    ) -> RunningProcess:
        """A process in a terminal, whose output counts as `stdout`; `outer` passes over."""
        stdin = FileIO(os.dup(outer), "w")
        return cls(pid, FileIO(outer), None, exited, signal_group, stdin)

    def close(self) -> None:
        """Close its streams, when nobody is to read or write them."""
        for file in (*self._files.values(), self.stdin):
            if file is not None:
                file.close()

    async def output(self, stream: str) -> AsyncGenerator[bytes, None]:
        """Yield what the process writes to `stdout` or `stderr`, in pieces of at most 32 KiB.

        Ends with the stream, or 0.2 s after the process: a child left behind may hold the stream
        open for ever.
        """
        file = self._files[stream]
        if file is None:
            return
        with file:
            async for piece in _read_pipe(file.fileno(), self.exited):
                yield piece

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the process group; does nothing once the process has been reaped."""
        if not self.exited.done():
            # Once reaped, its number may belong to somebody else.
            self._signal_group(number)


async def read_to_end(process: RunningProcess) -> bytes:
    """Return what a process writes to standard output until it ends; the rest is dropped."""

    async def read(stream: str) -> bytes:
        return b"".join([piece async for piece in process.output(stream)])

    output, _ = await asyncio.gather(read("stdout"), read("stderr"))
    await process.exited
    return output


def _follow(process: subprocess.Popen[bytes], terminal: int | None) -> RunningProcess:
    exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    watch_exit(process, exited)

    def signal_group(number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)

    if terminal is not None:
        return RunningProcess.in_terminal(process.pid, terminal, exited, signal_group)
    # Without a buffer, as they were opened, pipes are plain files.
    stdout, stderr = cast(FileIO, process.stdout), cast(FileIO, process.stderr)
    stdin = cast("FileIO | None", process.stdin)
    return RunningProcess(process.pid, stdout, stderr, exited, signal_group, stdin)


def watch_exit(process: subprocess.Popen[bytes], exited: asyncio.Future[int]) -> None:
    """Put a process's return code into a future as soon as it has ended."""
    loop = asyncio.get_running_loop()

    def reap() -> None:
        returncode = process.wait()
        if not exited.done():
            exited.set_result(returncode)

    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):

        def wait_in_thread() -> None:
            process.wait()
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(reap)

        threading.Thread(target=wait_in_thread, daemon=True).start()
        return

    def on_exit() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        reap()

    loop.add_reader(descriptor, on_exit)


async def _read_pipe(descriptor: int, exited: asyncio.Future[int]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    owed, drain_until = 0, float("inf")
    while True:
        if exited.done() and drain_until == float("inf"):
            # What the process wrote before its end is in the pipe now; it is owed to the reader
            # however slow that is.
            owed, drain_until = _available(descriptor), loop.time() + _DRAIN_SECONDS
        try:
            piece = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            if loop.time() >= drain_until:
                return
            await _readable(descriptor, exited, drain_until)
            continue
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return  # a terminal that no process has open any more
        if not piece:
            return
        yield piece
        owed -= len(piece)
        if owed <= 0 and loop.time() >= drain_until:
            return


async def _readable(descriptor: int, exited: asyncio.Future[int], until: float) -> None:
    """Wait until the pipe has something, the process exits or, once it has, the time is over."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[int] = loop.create_future()

    def on_ready() -> None:
        loop.remove_reader(descriptor)
        ready.set_result(descriptor)

    loop.add_reader(descriptor, on_ready)
    try:
        if exited.done():
            await asyncio.wait({ready}, timeout=until - loop.time())
        else:
            await asyncio.wait({ready, exited}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(descriptor)


def _available(descriptor: int) -> int:
    answer = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0")
    return int.from_bytes(answer, sys.byteorder)
