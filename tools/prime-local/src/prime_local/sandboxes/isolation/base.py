"""What every isolation mode offers."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal, Protocol

from prime_local.limits import Resources
from prime_local.sandboxes.commands import Command
from prime_local.sandboxes.processes import RunningProcess
from prime_local.sandboxes.terminals import Stdin

ModeName = Literal["full", "bwrap", "process"]
WantedMode = Literal["auto", "full", "bwrap", "process"]
# Told of a sandbox that came to an end by itself: its `errorType` and `errorMessage`.
OnTrouble = Callable[[str, str], None]


class IsolationError(Exception):
    """A mode cannot be had here, or a sandbox cannot be made; the text says why."""


@dataclass(frozen=True)
class Mount:
    """A volume in a sandbox: a private copy of `files`, empty for None, at `path`."""

    name: str
    path: str
    read_only: bool
    files: Path | None


@dataclass(frozen=True)
class Box:
    """A sandbox to make: its id, what it may take, and what it starts with.

    `files` has a folder for each of the mode's `parts`; None for a new root filesystem.
    """

    sandbox_id: str
    resources: Resources
    files: Path | None = None
    mounts: tuple[Mount, ...] = ()


class Links(Protocol):
    """Connects sandboxes to a network of the platform's own, which filters what passes."""

    async def connect(self, sandbox_id: str, address: IPv4Address) -> None:
        """Give a sandbox that is open an address; nothing reaches or leaves it yet.

        Raises:
            IsolationError: it cannot be done.
        """

    async def enforce(self, ruleset: str) -> None:
        """Replace the filter; see `networks.ruleset`.

        Raises:
            IsolationError: it cannot be done, and the filter of before holds.
        """

    async def dial(self, address: IPv4Address, port: int) -> tuple[StreamReader, StreamWriter]:
        """Connect to a port of a sandbox, past the filter.

        Raises:
            IsolationError: there is no connection to be had.
        """

    async def tell_names(self, sandbox_id: str, hosts: str) -> None:
        """Replace the /etc/hosts of a sandbox that is open.

        Raises:
            OSError: it cannot be done.
        """


class Isolation(Protocol):
    """Makes sandboxes, starts commands in them and ends them."""

    @property
    def name(self) -> ModeName: ...

    @property
    def links(self) -> Links | None:
        """What can connect sandboxes; None where nothing can."""

    def workspace(self, sandbox_id: str) -> str:
        """Return the folder that commands work in, as they see it."""

    def parts(self, sandbox_id: str) -> Mapping[str, Path]:
        """Return the folders that hold a sandbox's own files, without volumes, by their names."""

    def volume(self, sandbox_id: str, name: str) -> Path:
        """Return the folder that holds a sandbox's copy of a volume."""

    def mount_refusal(self, path: str) -> str | None:
        """Say why a volume cannot be mounted at an absolute path; None when it can."""

    def open(self, box: Box, on_trouble: OnTrouble) -> Awaitable[None] | None:
        """Make a sandbox; None when there is nothing to wait for.

        The awaitable raises `IsolationError` when it cannot be made.
        """

    async def launch(
        self, sandbox_id: str, command: Command, tree: str, stdin: Stdin = "none"
    ) -> RunningProcess:
        """Start a command.

        Args:
            sandbox_id: of a sandbox that is open.
            command: what to run; its directory is the workspace when it names none.
            tree: a name for the command and its children; see `trees.tree_name`.
            stdin: what it reads; a terminal is where it writes as well.

        Raises:
            CommandFault: `invalid_argument` for an unknown account, directory or program,
                `resource_exhausted` when no process can be had.
        """

    def file_roots(self, sandbox_id: str, *, writing: bool) -> tuple[str, ...]:
        """Return the folders that file routes must keep to, as commands see them.

        None where a sandbox has a root of its own, which keeps everything to itself.
        """

    async def kill(self, sandbox_id: str, tree: str) -> None:
        """Kill a command with its children, also those outside its process group."""

    async def end(self, sandbox_id: str, tree: str) -> None:
        """Kill every process of a sandbox; `tree` is what the names of its commands begin with."""

    async def remove(self, sandbox_id: str) -> None:
        """Delete the files of a sandbox that has ended."""

    async def close(self) -> None:
        """Give back what the mode itself holds; its sandboxes have ended."""
