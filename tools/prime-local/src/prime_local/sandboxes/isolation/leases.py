"""Leases: who is alive, and what a platform that died without a word has left behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from prime_local.sandboxes.isolation.cgroups import remove_groups
from prime_local.sandboxes.removal import remove_tree
from prime_local.sandboxes.trees import kill_trees

logger = logging.getLogger("prime_local")


@dataclass(frozen=True)
class Belongings:
    """What a platform has on this machine.

    Args:
        instance: the first part of its processes' marks; see `trees.tree_name`.
        folder: of its sandboxes.
        groups: its control groups.
    """

    instance: str
    folder: str
    groups: tuple[str, ...] = ()


class Lease:
    """A locked file that says what a living platform has. The lock ends with the process."""

    def __init__(self, file: IO[str], path: Path) -> None:
        self._file = file
        self._path = path

    @classmethod
    def take(cls, belongings: Belongings) -> Lease | None:
        """Leave word for later platforms; None where no folder for that can be had."""
        folder = lease_folder()
        if folder is None:
            logger.warning("after a crash of this platform nobody would clean up: no lease folder")
            return None
        path = folder / f"{belongings.instance}.json"
        file = path.open("w", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(asdict(belongings), file)
        file.flush()
        return cls(file, path)

    def release(self) -> None:
        """Say that nothing is left."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def sweep() -> None:
    """Clean up after platforms of this account that died; those alive are left alone."""
    folder = lease_folder()
    if folder is None:
        return
    for path in folder.glob("*.json"):
        with contextlib.suppress(OSError), _unheld(path) as text:
            if text is not None:
                _clean_up_after(text)
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def _unheld(path: Path) -> Iterator[str | None]:
    """Read a lease whose holder is dead, and hold it meanwhile; None for any other."""
    with path.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            # An empty one has just been made, and is about to be locked and written.
            yield file.read() or None


def _clean_up_after(lease: str) -> None:
    try:
        left = Belongings(**json.loads(lease))
    except (ValueError, TypeError):
        # Cut short by the crash, before there was anything to clean up.
        return
    logger.warning("cleaning up after a platform that died: %s", left.folder)
    kill_trees(frozenset({left.instance.encode()}))
    remove_groups(map(Path, left.groups))
    remove_tree(Path(left.folder))


def lease_folder() -> Path | None:
    """Return the folder of this account's leases: one that no other account can write to."""
    if os.geteuid() == 0 and Path("/run").is_dir():
        folder = Path("/run/prime-local")
    elif runtime := os.environ.get("XDG_RUNTIME_DIR"):
        folder = Path(runtime, "prime-local")
    else:
        folder = Path(tempfile.gettempdir(), f"prime-local-{os.geteuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return folder if private and not found.st_mode & 0o022 else None
