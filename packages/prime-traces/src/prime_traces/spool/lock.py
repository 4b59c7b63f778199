"""One process a directory."""

from __future__ import annotations

import contextlib
import os
import sys

from prime_traces.errors import SpoolLockedError

if sys.platform == "win32":
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _drop(fd: int) -> None:
        """Closing the file does it."""

    def _holder(fd: int) -> str:
        return ""
else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _drop(fd: int) -> None:
        # A forked child may still have the file open, and the lock with it.
        fcntl.flock(fd, fcntl.LOCK_UN)

    def _holder(fd: int) -> str:
        return os.pread(fd, 32, 0).decode().strip()


__all__ = ["FolderLock"]


class FolderLock:
    """A lock that ends with its process, however that ends.

    Its file stays: were it removed, a third process could lock a new one beside the second's.

    Args:
        folder: the folder that is locked.

    Raises:
        SpoolLockedError: somebody else holds it.
    """

    def __init__(self, folder: str) -> None:
        self._fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(self._fd)
        except OSError:
            holder = _holder(self._fd) or "another"
            os.close(self._fd)
            raise SpoolLockedError(
                f"process {holder} has a spool open in {folder}: close that one first, or use a "
                "directory for each process"
            ) from None
        with contextlib.suppress(OSError):  # of a full disk; it only helps the message
            os.write(self._fd, f"{os.getpid():<31}\n".encode())

    def release(self) -> None:
        """Lets go of it."""
        if self._fd >= 0:
            _drop(self._fd)
        self.abandon()

    def abandon(self) -> None:
        """Closes the file only: the parent of a forked child holds the lock on."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
