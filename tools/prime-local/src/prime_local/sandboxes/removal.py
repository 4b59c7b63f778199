"""Deleting a folder that somebody else filled."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from pathlib import Path


def remove_tree(root: Path) -> None:
    """Delete a folder with all that is in it; what cannot be deleted stays.

    Neither folders nested beyond the longest path that the system takes nor folders without
    permissions stand in the way: each is moved up to the top before it is emptied.
    """
    # Names that are not taken: a move must not replace anything.
    names = (root / f"{secrets.token_hex(8)}-{number}" for number in itertools.count())
    folders = [root]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):
            folder.chmod(0o700)
            with os.scandir(folder) as entries:
                found = list(entries)
            for entry in found:
                _remove_entry(entry, next(names), folders)
            if folder != root:
                folder.rmdir()
    with contextlib.suppress(OSError):
        root.rmdir()


def _remove_entry(entry: os.DirEntry[str], name: Path, folders: list[Path]) -> None:
    with contextlib.suppress(OSError):
        if entry.is_dir(follow_symlinks=False):
            # Moving a folder writes to it.
            os.chmod(entry.path, 0o700)
            os.rename(entry.path, name)
            folders.append(name)
        else:
            os.unlink(entry.path)
