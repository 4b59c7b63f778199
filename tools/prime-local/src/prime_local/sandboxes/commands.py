"""What goes in and out of a command, free of any wire format."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

from prime_local.sandboxes.terminals import Stdin, TerminalSize


@dataclass(frozen=True)
class Command:
    """A program to run.

    Args:
        argv: its words.
        env: extra environment.
        cwd: its directory.
        user: its account.
        stdin: what it reads.
        building: lets root do to files and accounts what builds of images do, such as chown.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    user: str | None = None
    stdin: Stdin = "none"
    building: bool = False

    @property
    def in_terminal(self) -> bool:
        """Whether a terminal takes the place of its pipes."""
        return isinstance(self.stdin, TerminalSize)


@dataclass(frozen=True)
class Started:
    pid: int


@dataclass(frozen=True)
class Output:
    """A piece of what the command wrote; `stream` is `stdout`, `stderr` or `pty`."""

    stream: str
    data: bytes


def shell_exit_code(returncode: int) -> int:
    """Turn a return code of `subprocess` into a shell's: 128 + N for signal N."""
    return returncode if returncode >= 0 else 128 - returncode


@dataclass(frozen=True)
class Ended:
    """The command's end; a signal N counts as exit code 128 + N, as shells report it."""

    exit_code: int
    exited: bool
    status: str

    @classmethod
    def from_returncode(cls, returncode: int) -> Ended:
        """Read the return code that `subprocess` gives (negative for a signal)."""
        if returncode >= 0:
            return cls(returncode, True, f"exit status {returncode}")
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = str(-returncode)
        return cls(shell_exit_code(returncode), False, f"signal: {name}")


Event = Started | Output | Ended


class CommandFault(Exception):
    """A command that could not start or was cut short, as a Connect code and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
