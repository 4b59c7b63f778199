"""What sandboxes see of this machine's files, and where their own are."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# What a system consists of. Any other folder at the top holds somebody's data.
_SYSTEM = frozenset(
    {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "nix", "gnu"}
)
_PACKAGES = Path("/var/lib/dpkg")
# Where a sandbox works, and where it finds `python`.
WORKSPACE = "/workspace"
PYTHON = "/run/prime-local/python"
SEARCH_PATH = f"{PYTHON}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What a sandbox with a bare root may write to, with modes.
OWN_FOLDERS = {"tmp": 0o1777, "root": 0o700, WORKSPACE[1:]: 0o755}
# The layer of an overlay that holds what a sandbox has changed.
UPPER = "upper"
# Where nothing else can be mounted: what a sandbox needs to run at all.
KERNEL_FOLDERS = ("/dev", "/proc", "/sys", "/run/prime-local")
# Empty for a new sandbox, whether this machine has them or not, with their modes.
_NEW_FOLDERS = {
    **OWN_FOLDERS,
    "dev": 0o755,
    "home": 0o755,
    "proc": 0o555,
    "run": 0o755,
    "sys": 0o555,
    "var/tmp": 0o1777,
}
# A volume's name, its path in the sandbox, and whether it is read-only there.
Mounts = Iterable[tuple[str, str, bool]]
_OPAQUE = "trusted.overlay.opaque"
# Much in /proc belongs to root and acts on the whole machine; capabilities do not guard all of it.
_READ_ONLY_PROC = ("--remount-ro", "/proc")


def volume_folder(own: Path, name: str) -> Path:
    """Return the folder of a sandbox's copy of a volume.

    Args:
        own: the sandbox's folder.
        name: the volume's name.
    """
    return own / "volumes" / name


def is_system_path(path: str) -> bool:
    """Say whether an absolute path lies in a system folder of this machine."""
    parts = Path(path).parts
    return parts[1] in _SYSTEM and Path("/", parts[1]).exists()


@dataclass(frozen=True)
class HostView:
    """Which of this machine's files sandboxes can see.

    Args:
        private: folders that they must not see wherever they are: the platform's own.
        interpreter: the folder of the Python installation behind `python`.
        python: the platform's bare virtual environment.
    """

    private: tuple[Path, ...]
    interpreter: Path
    python: Path

    @classmethod
    def around(cls, private: Iterable[Path], python: Path) -> HostView:
        """Return the view that hides some folders and offers this interpreter."""
        folders = tuple(path.resolve() for path in private)
        return cls(folders, Path(sys.base_prefix).resolve(), python)

    @property
    def hidden_interpreter(self) -> Path | None:
        """The interpreter's folder, if it lies where sandboxes would not see it."""
        return None if self._shows(self.interpreter) else self.interpreter

    @cached_property
    def secrets(self) -> list[Path]:
        """What in the shown folders must be covered, folders and files.

        In /etc that is whatever ordinary accounts of this machine may not read: a sandbox's
        commands have the platform's own account.
        """
        shown = [path for path in self.private if self._shows(path)]
        # What lies in a covered folder is covered.
        outermost = [path for path in shown if not set(path.parents) & set(shown)]
        return [*outermost, *_unreadable(Path("/etc"))]

    def _shows(self, path: Path) -> bool:
        return path.parts[1] in _SYSTEM if len(path.parts) > 1 else True


def _unreadable(folder: Path) -> Iterator[Path]:
    for entry in _entries(folder):
        if entry.is_symlink():
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if entry.is_dir():
            if mode & 0o005 != 0o005:
                yield Path(entry.path)
            else:
                yield from _unreadable(Path(entry.path))
        elif not mode & stat.S_IROTH:
            yield Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


class CoverLayer:
    """An overlay layer between this machine's root and a sandbox's own files.

    It hides what sandboxes must not see, yet lets them make files of their own in its place:
    opaque folders begin empty, a device 0:0 stands for a file that is not there.

    Args:
        folder: where; a file system of its own, since overlay layers must not overlap.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fill(self, view: HostView) -> None:
        """Lay the layer out."""
        for path, shown in (
            (Path("/"), _SYSTEM | {"var"}),
            (Path("/var"), {"lib"}),
            (_PACKAGES.parent, {_PACKAGES.name}),
        ):
            for entry in _entries(path):
                if entry.name not in shown:
                    self._hide(Path(entry.path))
        for name, mode in _NEW_FOLDERS.items():
            self._empty(Path("/", name)).chmod(mode)
        for path in view.secrets:
            self._hide(path)
        for place in (view.hidden_interpreter, Path(PYTHON)):
            if place is not None:
                self._make(place)

    def _hide(self, path: Path) -> None:
        if path.is_symlink():
            # It shows a name only: what it leads to is hidden or not by itself.
            return
        if path.is_dir():
            self._empty(path)
        else:
            place = self._make(path.parent) / path.name
            os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))

    def _empty(self, path: Path) -> Path:
        place = self._make(path)
        os.setxattr(place, _OPAQUE, b"y")
        return place

    def _make(self, path: Path) -> Path:
        """Make a folder and those above it: in a merged folder the topmost layer's mode counts."""
        place = self._folder / path.relative_to("/")
        if not place.exists():
            self._make(path.parent)
            place.mkdir()
            if path.is_dir():
                found = path.stat()
                place.chmod(stat.S_IMODE(found.st_mode))
                os.chown(place, found.st_uid, found.st_gid)
        return place


def overlay_root_arguments(view: HostView, own: Path, mounts: Mounts) -> list[str]:
    """Return bubblewrap's arguments for a root that is an overlay over this machine's.

    Args:
        view: what of this machine is shown.
        own: the sandbox's folder, with the overlay at `merged`.
        mounts: the volumes to mount.
    """
    arguments = ["--bind", str(own / "merged"), "/", "--dev", "/dev", "--proc", "/proc"]
    arguments += [*_interpreter_arguments(view), *_mount_arguments(own, mounts)]
    return [*arguments, *_READ_ONLY_PROC]


def bare_root_arguments(view: HostView, own: Path, mounts: Mounts, empty: Path) -> list[str]:
    """Return bubblewrap's arguments for a read-only root of this machine's system folders.

    Args:
        view: what of this machine is shown.
        own: the sandbox's folder; with `OWN_FOLDERS` in it.
        mounts: the volumes to mount.
        empty: holds an empty folder `folder` and an empty file `file` to cover others with.
    """
    arguments: list[str] = []
    for entry in _entries(Path("/")):
        if entry.name in _SYSTEM:
            if entry.is_symlink():
                arguments += ["--symlink", os.readlink(entry.path), entry.path]
            elif entry.is_dir():
                arguments += ["--ro-bind", entry.path, entry.path]
    for path in view.secrets:
        if os.access(path, os.R_OK):
            arguments += ["--ro-bind", str(empty / ("folder" if path.is_dir() else "file"))]
            arguments.append(str(path))
    for name in ("home", "run", "sys", "var"):
        arguments += ["--dir", f"/{name}"]
    arguments += ["--symlink", "../tmp", "/var/tmp"]
    for name in OWN_FOLDERS:
        arguments += ["--bind", str(own / name), f"/{name}"]
    arguments += ["--dev", "/dev", "--proc", "/proc"]
    arguments += [*_interpreter_arguments(view), *_mount_arguments(own, mounts)]
    return [*arguments, *_READ_ONLY_PROC, "--remount-ro", "/"]


def _mount_arguments(own: Path, mounts: Mounts) -> Iterator[str]:
    for name, path, read_only in mounts:
        yield from ("--ro-bind" if read_only else "--bind", str(volume_folder(own, name)), path)


def _interpreter_arguments(view: HostView) -> list[str]:
    arguments = ["--ro-bind", str(view.python), PYTHON]
    if (interpreter := view.hidden_interpreter) is not None:
        arguments += ["--ro-bind", str(interpreter), str(interpreter)]
    return arguments
