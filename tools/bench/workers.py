"""Measures and servers in processes of their own, asked line by line over their pipes."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

TOOLS = Path(__file__).resolve().parent.parent
PATIENCE = 300.0  # seconds that one answer may take
STOP_SECONDS = 10.0

Answer = dict[str, Any]


def cores() -> tuple[int | None, int | None]:
    """The core of what is measured, and that of the servers; None where nothing can be pinned."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def pin(pid: int, core: int | None) -> None:
    """Keeps a process, and what it starts from now on, on one core."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {core})


def environment() -> dict[str, str]:
    """This process's environment, without what would change what is measured."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PRIME_", "PYTHON"))
    }
    return {**kept, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


class Worker:
    """A module of this package as a process.

    Args:
        module: its name, such as ``stub``.
        arguments: its command line.
        core: the core that it is kept on, or None.
        python: the interpreter.
    """

    def __init__(
        self, module: str, *arguments: str, core: int | None, python: str = sys.executable
    ) -> None:
        self._name = module
        self._process = subprocess.Popen(
            [python, "-m", f"bench.{module}", *arguments],
            cwd=TOOLS,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with contextlib.suppress(ProcessLookupError):
            pin(self._process.pid, core)

    def ask(self, **question: object) -> Answer:
        """Sends a question and waits for its answer.

        Raises:
            RuntimeError: the process ended, or took longer than 5 minutes.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(f"bench.{self._name} ended too early") from None
        readable, _, _ = select.select([stdout], [], [], PATIENCE)
        line = stdout.readline() if readable else b""
        if not line:
            raise RuntimeError(f"bench.{self._name} gave no answer to {question}")
        answer: Answer = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the process, by the end of its input or else by force."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(0 if error is not None else STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def answer_questions(handler: Callable[..., Answer]) -> None:
    """The other end of `Worker`: calls the handler for each line of standard input."""
    raise_descriptor_limit()
    for line in sys.stdin:
        print(json.dumps(handler(**json.loads(line))), flush=True)


def raise_descriptor_limit() -> None:
    """Raises the soft limit of descriptors to the hard one, as far as 2,000 sockets need it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def memory_kib() -> tuple[int, int]:
    """Resident memory of this process now, and at its peak so far.

    Where there is no /proc, both are the peak.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak //= 1024 if sys.platform == "darwin" else 1
        return peak, peak
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    now, peak = (int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))
    return now, peak


class Stopwatch:
    """Wall and CPU seconds since it was made; CPU of all threads of this process."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def read(self) -> Answer:
        return {
            "wall": time.perf_counter() - self._wall,
            "cpu": time.process_time() - self._cpu,
        }
