"""Accounts of a sandbox, looked up from outside without trusting its files."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 1024 * 1024
# The numbers that a sandbox's user namespace has; see `kernel.new_user_namespace`.
MOST_ACCOUNTS = 65536


@dataclass(frozen=True)
class Account:
    """Who a command runs as."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


ROOT = Account("root", 0, 0, (0,), "/root")


def find_account(layers: Sequence[Path], wanted: str) -> Account | None:
    """Return the account that a sandbox knows by a name or number; None when it knows none.

    Args:
        layers: the folders that its root consists of, the topmost first.
        wanted: the account, and perhaps a group after a colon.
    """
    user, _, group = wanted.partition(":")
    rows = list(_rows(layers, "passwd", 7))
    row = next((row for row in rows if user in (row[0], row[2])), None)
    if row is None and not user.isdecimal():
        return None
    if row is None:
        name, uid, gid, home = user, int(user), 0, "/"
    else:
        name, uid, gid, home = row[0], int(row[2]), int(row[3]), row[5] or "/"
    groups = list(_rows(layers, "group", 4))
    members = [int(row[2]) for row in groups if name in row[3].split(",")]
    if group:
        found = next((row for row in groups if group in (row[0], row[2])), None)
        if found is None and not group.isdecimal():
            return None
        gid, members = int(group if found is None else found[2]), []
    numbers = (uid, gid, *members)
    if not all(0 <= number < MOST_ACCOUNTS for number in numbers):
        return None
    return Account(name, uid, gid, (gid, *members), home)


def _rows(layers: Sequence[Path], file: str, fields: int) -> Iterator[list[str]]:
    for line in _read(layers, file).splitlines():
        row = line.split(":")
        numbers = row[2:4] if fields == 7 else row[2:3]
        if len(row) == fields and all(number.isdecimal() for number in numbers):
            yield row


def _read(layers: Sequence[Path], file: str) -> str:
    """Return a file of /etc as the sandbox sees it, empty when there is none."""
    for layer in layers:
        with contextlib.ExitStack() as stack:
            try:
                descriptor = _open(layer, file, stack)
            except FileNotFoundError:
                continue  # the layer below shows
            except OSError:
                return ""  # a link, or something else that a sandbox has put there
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    return ""


def _open(layer: Path, file: str, stack: contextlib.ExitStack) -> int:
    """Open a file of a layer's /etc; no link is followed, and no pipe waited for."""
    folder = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    root = os.open(layer, folder)
    stack.callback(os.close, root)
    etc = os.open("etc", folder, dir_fd=root)
    stack.callback(os.close, etc)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    found = os.open(file, flags, dir_fd=etc)
    stack.callback(os.close, found)
    return found
