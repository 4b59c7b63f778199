"""Carrying the steps of a build out, in a sandbox of its own that ends with the build."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path

from prime_local.checkpoints.archive import Archive
from prime_local.images.dockerfile import Copy, MakeFolder, Plan, Run, Step
from prime_local.images.record import Content
from prime_local.limits import Resources
from prime_local.sandboxes.commands import Command, CommandFault, shell_exit_code
from prime_local.sandboxes.copying import CopyError
from prime_local.sandboxes.isolation.base import Box, Isolation, IsolationError, Mount
from prime_local.sandboxes.isolation.view import KERNEL_FOLDERS, OWN_FOLDERS, PYTHON, is_system_path
from prime_local.sandboxes.processes import RunningProcess
from prime_local.sandboxes.trees import tree_name

_RESOURCES = Resources(cpu=2, memory=2, disk=16)
_MOST_BYTES = int(_RESOURCES.disk) * 1024**3
_LOG_BYTES = 256 * 1024
_CONTEXT = "/.prime-build"
_CONTEXT_VOLUME = "image.context"
_CLEAN_UP_SECONDS = 15.0
_ROOT = frozenset({None, "root", "0", "root:root", "0:0"})


class BuildFailure(Exception):
    """A step failed; the log says why."""


class BuildLog:
    """What a build says: the newest 256 KiB."""

    def __init__(self) -> None:
        self._data = bytearray()

    def line(self, text: str) -> None:
        self.write(text.encode() + b"\n")

    def write(self, data: bytes) -> None:
        self._data += data
        del self._data[:-_LOG_BYTES]

    def tail(self, most_bytes: int) -> str:
        return self._data[-most_bytes:].decode(errors="replace").strip()


def top_mount(top: str, files: Path | None) -> Mount:
    """Return a folder at the root, of an image, as a mount of its own."""
    return Mount(f"image.{top}", f"/{top}", read_only=False, files=files)


@dataclass(frozen=True)
class Kitchen:
    """What builds share.

    Args:
        isolation: makes sandboxes.
        archive: keeps the files of images.
        instance: names this platform's processes.
    """

    isolation: Isolation
    archive: Archive
    instance: str

    async def cook(
        self, build_id: str, plan: Plan, base: Content, context: Path, log: BuildLog
    ) -> Content:
        """Carry a plan out and keep what it makes; nothing else is left.

        Args:
            build_id: names the sandbox, and the folder of the files.
            plan: the steps.
            base: the image that it starts from.
            context: the folder of the context.
            log: told what happens.

        Raises:
            BuildFailure: a step failed.
        """
        log.line(f"FROM {plan.base}")
        self._check_accounts(plan)
        active = [step for step in plan.steps if step.action is not None]
        if not active and base.folder is None:
            for step in plan.steps:
                log.line(step.title)
            return Content(plan.settings)
        tops = self._tops(plan, base, context)
        site = _Site(self, build_id, self._box(build_id, base, tops, context), log)
        try:
            await site.open()
            for step in plan.steps:
                await site.take(step)
            await site.close()
            size = await self._keep(build_id, tops)
        except (IsolationError, CommandFault, CopyError) as error:
            text = error.message if isinstance(error, CommandFault) else str(error)
            raise BuildFailure(text) from error
        finally:
            # A second cancellation must not leave it behind.
            await asyncio.shield(site.clear())
        return Content(plan.settings, build_id, self.isolation.name, tops, size)

    def _check_accounts(self, plan: Plan) -> None:
        """Refuse accounts other than root where commands run as root only.

        Raises:
            BuildFailure: the plan wants some.
        """
        for step in plan.steps:
            owner = step.action.owner if isinstance(step.action, Copy) else None
            others = {step.settings.user, owner} - _ROOT
            if others and self.isolation.name != "full":
                raise BuildFailure(
                    f"{step.title}: isolation '{self.isolation.name}' knows no account but "
                    "root; start prime-local with --isolation full"
                )

    def _box(self, build_id: str, base: Content, tops: tuple[str, ...], context: Path) -> Box:
        files = None if base.folder is None else self.archive.folder(base.folder)
        known = {top: files / top for top in base.tops} if files is not None else {}
        mounts = [top_mount(top, known.get(top)) for top in tops]
        mounts.append(Mount(_CONTEXT_VOLUME, _CONTEXT, read_only=True, files=context))
        return Box(build_id, _RESOURCES, files=files, mounts=tuple(mounts))

    def _tops(self, plan: Plan, base: Content, context: Path) -> tuple[str, ...]:
        """Return the folders at the root that have to be made before a read-only root is.

        Raises:
            BuildFailure: this mode cannot do what the plan wants.
        """
        if self.isolation.name == "full":
            return ()
        tops = set(base.tops)
        for step in plan.steps:
            if step.action is not None and self.isolation.name == "process":
                raise BuildFailure(
                    f"{step.title}: it needs a root of its own, and isolation 'process' has none; "
                    "start prime-local with --isolation full or bwrap"
                )
            if isinstance(step.action, Copy):
                top = self._top(step, step.action.target)
                if f"/{top}" == step.action.target and {top} - tops:
                    _refuse_file(step, step.action, context)
                tops.add(top)
            elif isinstance(step.action, MakeFolder):
                tops.add(self._top(step, step.action.path))
        return tuple(sorted(tops - {"", *OWN_FOLDERS}))

    def _top(self, step: Step, path: str) -> str:
        top = path.strip("/").partition("/")[0]
        if not top or top in OWN_FOLDERS:
            return top
        closed = any(f"/{top}/".startswith(f"/{name.split('/')[1]}/") for name in KERNEL_FOLDERS)
        if closed or top == "var" or is_system_path(f"/{top}"):
            raise BuildFailure(
                f"{step.title}: /{top} is read-only in isolation 'bwrap'; "
                "start prime-local with --isolation full"
            )
        return top

    async def _keep(self, build_id: str, tops: tuple[str, ...]) -> int:
        parts = dict(self.isolation.parts(build_id))
        upper = parts.get("upper")
        if upper is not None:
            with contextlib.suppress(OSError):
                (upper / _CONTEXT[1:]).rmdir()
        for top in tops:
            parts[top] = self.isolation.volume(build_id, f"image.{top}")
        return await self.archive.keep(build_id, parts, _MOST_BYTES, threading.Event())


def _refuse_file(step: Step, action: Copy, context: Path) -> None:
    """Refuse to make a file at a root that is read-only; folders there are made beforehand."""
    if not (context / action.sources[0].lstrip("/")).is_dir():
        raise BuildFailure(f"{step.title}: isolation 'bwrap' can make folders at /, but no files")


class _Site:
    """The sandbox of one build."""

    def __init__(self, kitchen: Kitchen, build_id: str, box: Box, log: BuildLog) -> None:
        self._isolation = kitchen.isolation
        self._id = build_id
        self._box = box
        self._log = log
        self._tree = tree_name(kitchen.instance, build_id)
        self._numbers = itertools.count(1)
        self._trouble: str | None = None
        self._program = Path(__file__).with_name("copying_program.py").read_text(encoding="utf-8")

    async def open(self) -> None:
        opening: Awaitable[None] | None = self._isolation.open(self._box, self._on_trouble)
        if opening is not None:
            await opening

    async def take(self, step: Step) -> None:
        """Carry a step out.

        Raises:
            BuildFailure: it failed.
        """
        self._log.line(step.title)
        action, settings = step.action, step.settings
        if isinstance(action, Run):
            directory = settings.workdir or "/"
            command = Command(
                action.argv, dict(settings.env), directory, settings.user, building=True
            )
        elif isinstance(action, MakeFolder):
            command = Command(("/bin/mkdir", "-p", "--", action.path), cwd="/", building=True)
        elif isinstance(action, Copy):
            wanted = {
                "context": _CONTEXT,
                "sources": action.sources,
                "target": action.target,
                "mode": action.mode,
                "owner": action.owner,
                "unpack": action.unpack,
            }
            python = f"{PYTHON}/bin/python"
            words = (python, "-I", "-S", "-c", self._program, json.dumps(wanted))
            command = Command(words, cwd="/", building=True)
        else:
            return
        code = await self._execute(command)
        if self._trouble is not None:
            raise BuildFailure(f"{step.title}: {self._trouble}")
        if code != 0:
            raise BuildFailure(f"{step.title}: exit code {code}")

    async def _execute(self, command: Command) -> int:
        tree = tree_name(self._tree, str(next(self._numbers)))
        process = await self._isolation.launch(self._id, command, tree)
        await asyncio.gather(self._collect(process, "stdout"), self._collect(process, "stderr"))
        code = shell_exit_code(await process.exited)
        # What it left running must not run on into the next step.
        await self._isolation.kill(self._id, tree)
        return code

    async def _collect(self, process: RunningProcess, stream: str) -> None:
        async for piece in process.output(stream):
            self._log.write(piece)

    def _on_trouble(self, kind: str, message: str) -> None:
        self._trouble = f"{kind}: {message}"

    async def close(self) -> None:
        """End its processes; the files stay."""
        await self._isolation.end(self._id, self._tree)

    async def clear(self) -> None:
        """End it and delete its files."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.close(), _CLEAN_UP_SECONDS)
        await self._isolation.remove(self._id)
