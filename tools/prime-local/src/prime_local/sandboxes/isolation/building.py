"""Building a sandbox: its root, its namespaces, and a first process that keeps them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_local.sandboxes.isolation import kernel
from prime_local.sandboxes.isolation.accounts import MOST_ACCOUNTS
from prime_local.sandboxes.isolation.cgroups import PlatformGroups
from prime_local.sandboxes.isolation.view import (
    OWN_FOLDERS,
    UPPER,
    CoverLayer,
    HostView,
    Mounts,
    bare_root_arguments,
    overlay_root_arguments,
)

# A sandbox's own /etc/hosts, in its folder.
HOSTS = "hosts"
_SYSTEM_HOSTS = "/etc/hosts"
_NAMESPACES = ("pid", "net", "ipc", "uts", "cgroup")
# Process 1 of a sandbox: bash reaps every orphan, and cannot be killed from inside. It waits on
# a pipe whose both ends are its own. It says on descriptor 3 that all is set up.
_FIRST_PROCESS = """
trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE
echo >&3
exec 2>&1 3>&- 4>&- 5>&-
while :; do read -r; done
"""
_FIRST_FREE_DESCRIPTOR = 16
_FIRST_EXTRA = 5


@dataclass(frozen=True)
class Unfinished:
    """A sandbox that is being built.

    Args:
        monitor: process id of bubblewrap, a child of the caller.
        ready: becomes readable when all is set up, or closed when that failed.
        info: what bubblewrap says about it.
        errors: what bubblewrap complains about.
    """

    monitor: int
    ready: int
    info: int
    errors: int

    def first_process(self) -> int | None:
        """Return a pidfd of the sandbox's process 1 once `ready` is readable, None on failure."""
        if not os.read(self.ready, 1):
            return None
        return os.pidfd_open(json.loads(os.read(self.info, 4096))["child-pid"])

    def complaint(self) -> str:
        """Return why it failed; to be called when the monitor has ended."""
        os.set_blocking(self.errors, False)
        with contextlib.suppress(BlockingIOError):
            text = os.read(self.errors, 4096).decode(errors="replace").strip()
            if text:
                return text
        return "bubblewrap ended without a word"

    def close(self) -> None:
        for descriptor in (self.ready, self.info, self.errors):
            os.close(descriptor)


class Builder:
    """Builds sandboxes in folders below `root/sandboxes`.

    Args:
        bubblewrap: path of the program.
        root: the platform's folder, on disk.
        view: what of this machine they see.
        groups: control groups to put them in, with an overlay as their root; None for a
            read-only root and no limits.
    """

    def __init__(
        self, bubblewrap: str, root: Path, view: HostView, groups: PlatformGroups | None
    ) -> None:
        self._bubblewrap = bubblewrap
        self._root = root
        self._view = view
        self._groups = groups
        self._cover = root / "cover"
        self._empty = root / "empty"

    def prepare(self) -> None:
        """Set up what all sandboxes share. Mounts are seen by this process and its children only.

        Raises:
            OSError: something is not allowed here.
        """
        if self._groups is None:
            (self._empty / "folder").mkdir(parents=True, exist_ok=True)
            (self._empty / "file").touch()
            return
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        self._cover.mkdir(exist_ok=True)
        flags = kernel.MS_NOSUID | kernel.MS_NODEV
        kernel.mount("tmpfs", str(self._cover), "tmpfs", flags, "mode=755")
        CoverLayer(self._cover).fill(self._view)

    def build(self, sandbox: str, mounts: Mounts) -> Unfinished:
        """Begin to build a sandbox; its control group and its volumes are there already.

        Raises:
            OSError: the machine lacks something.
        """
        folder = self._root / "sandboxes" / sandbox
        folder.mkdir(parents=True, exist_ok=True)
        if self._groups is None:
            for name, mode in OWN_FOLDERS.items():
                # One with the files of a checkpoint is there, with the mode that it had.
                if not (folder / name).exists():
                    (folder / name).mkdir()
                    (folder / name).chmod(mode)
            arguments = bare_root_arguments(self._view, folder, mounts, self._empty)
        else:
            for name in (UPPER, "work", "merged"):
                (folder / name).mkdir(exist_ok=True)
            arguments = overlay_root_arguments(self._view, folder, mounts)
        arguments += _own_hosts(folder, sandbox, "--ro-bind" if self._groups is None else "--bind")
        for name in _NAMESPACES:
            arguments.append(f"--unshare-{name}")
        # Where there is only one's own account to know, bubblewrap makes the user namespace.
        accounts = self._groups is not None
        arguments += ["--userns", str(_FIRST_EXTRA)] if accounts else ["--unshare-user"]
        arguments += ["--uid", "0", "--gid", "0", "--hostname", sandbox, "--chdir", "/"]
        arguments += ["--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1"]
        arguments += ["--info-fd", "4", "--", "/bin/bash", "--norc", "-c", _FIRST_PROCESS]

        def prepare() -> Sequence[int]:
            if self._groups is None:
                return ()
            self._groups.join(sandbox)
            _mount_overlay(folder)
            return (kernel.new_user_namespace(MOST_ACCOUNTS),)

        return _spawn([self._bubblewrap, *arguments], prepare)


def _own_hosts(folder: Path, sandbox: str, bind: str) -> list[str]:
    """Return bubblewrap's arguments for names that the platform can change from outside."""
    if not os.path.exists(_SYSTEM_HOSTS):
        return []
    (folder / HOSTS).write_text(f"127.0.0.1 localhost {sandbox}\n")
    (folder / HOSTS).chmod(0o644)
    return [bind, str(folder / HOSTS), _SYSTEM_HOSTS]


def _mount_overlay(folder: Path) -> None:
    kernel.unshare(kernel.CLONE_NEWNS)
    # Relative: in the options of a mount, commas and colons have a meaning.
    os.chdir(folder)
    layers = f"lowerdir=../../cover:/,upperdir={UPPER},workdir=work,volatile"
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("overlay", "merged", "overlay", flags, layers)


def _spawn(words: Sequence[str], prepare: Callable[[], Sequence[int]]) -> Unfinished:
    """Start bubblewrap.

    Args:
        words: its command line.
        prepare: called before, in its process; returns descriptors for it from 5 on.
    """
    keep_read, keep_write = os.pipe()
    ready, ready_write = os.pipe()
    info, info_write = os.pipe()
    errors, errors_write = os.pipe()
    theirs = (keep_read, keep_write, errors_write, ready_write, info_write)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            kernel.die_with(parent)
            kernel.forget_keys()
            _arrange((*theirs, *prepare()))
            os.execve(words[0], list(words), {})
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(errors_write, str(error).encode(errors="replace"))
        finally:
            os._exit(1)
    for descriptor in theirs:
        os.close(descriptor)
    return Unfinished(child, ready, info, errors)


def _arrange(descriptors: Sequence[int]) -> None:
    """Make descriptors 0, 1, 2, ... of these."""
    first = _FIRST_FREE_DESCRIPTOR
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, first) for each in descriptors]
    for target, source in enumerate(moved):
        os.dup2(source, target)
