"""What a transfer has done so far, in a file that outlives a program that is killed.

One transfer has one journal, found again by what is moved where. A line is added for each step,
so that a program that is killed while it writes spoils the last line only. It holds no key and no
token, and is gone once the transfer is complete. While a transfer runs it holds a lock, which
ends with its process: the same call in another process keeps no journal then, and resumes none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no lock that a killed process leaves behind unlocked
    fcntl = None  # type: ignore[assignment]

__all__ = ["Journal", "open_journal"]

logger = logging.getLogger("prime_train")


class Journal:
    """A transfer's record. All methods run in threads.

    Attributes:
        token: names the transfer's temporary files.
        lines: what an earlier call has noted.
    """

    def __init__(
        self,
        path: Path | None,
        file: FileIO | None,
        token: str,
        lines: Sequence[Mapping[str, object]],
    ) -> None:
        self.token = token
        self.lines = lines
        self._path = path
        self._file = file
        self._lock = threading.Lock()

    def add(self, line: Mapping[str, object]) -> None:
        """Notes a step; a disk that is full ends the record, not the transfer."""
        with self._lock:
            if self._file is not None:
                try:
                    self._file.write(json.dumps(line).encode() + b"\n")
                except OSError:
                    self._end()

    def finish(self) -> None:
        """The transfer is complete: there is nothing to go on with."""
        with self._lock:
            if self._file is not None and self._path is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self._path)
            self._end()

    def close(self) -> None:
        """The transfer broke off; the record stays."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def open_journal(*identity: str) -> Journal:
    """Opens the journal of a transfer; without a place for one nothing is noted.

    Args:
        identity: what tells this transfer from every other.
    """
    name = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]
    try:
        path = Path.home() / ".prime" / "transfers" / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = _locked(path)
        return Journal(path, file, name[:8], _read(file))
    except (OSError, RuntimeError) as error:  # the latter: no home directory is known
        logger.debug("A transfer keeps no journal: %s", type(error).__name__)
        return Journal(None, None, secrets.token_hex(4), ())


def _locked(path: Path) -> FileIO:
    """The file, which no other process has; one that is deleted meanwhile is made anew.

    Raises:
        OSError: another process has it, or it can't be made.
    """
    while True:
        file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _read(file: FileIO) -> Sequence[Mapping[str, object]]:
    file.seek(0)
    lines: list[Mapping[str, object]] = []
    content = file.readall() or b""
    if content and not content.endswith(b"\n"):
        file.write(b"\n")  # behind the line that a kill cut short
    for text in content.splitlines():
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict):
                lines.append(line)
    return lines
