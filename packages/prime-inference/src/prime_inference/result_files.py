"""Results of requests in a file of JSON lines, from which a later run goes on."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from prime_inference.errors import ResultFileError
from prime_inference.models import ChatCompletion

try:
    import fcntl
except ImportError:  # Windows has other locks, which keep readers out as well
    fcntl = None  # type: ignore[assignment]

__all__ = ["ResultFile", "digest_of"]

T = TypeVar("T")


def digest_of(body: bytes, team_id: str | None) -> str:
    """What a request's body says, whatever the order of its fields, and who pays for it."""
    canonical = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{team_id or ''}\n{canonical}".encode()).hexdigest()


class ResultFile:
    """A file with a line a result: the request's number and digest, and the completion.

    What it holds stays on disk: of each result only the place of its line is kept in memory. It
    belongs to one run at a time, where the system has locks for that.

    Args:
        path: the file; it is made when there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._size = 0
        self._places: dict[tuple[int, str], tuple[int, int]] = {}
        self._pending: list[bytes] = []
        self._writing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Reads which results there are.

        Raises:
            ResultFileError: it can't be read or written, holds something else, or another run
                uses it.
        """
        await self._in_thread(self._open)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        try:
            return await asyncio.to_thread(work, *arguments)
        except OSError as error:
            if isinstance(error, ResultFileError):
                raise
            raise ResultFileError(f"{self._path} can't be used: {error}") from error

    def _open(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(self._path.stat().st_mode):  # a pipe's would wait for a writer
                raise ResultFileError(f"{self._path} is no regular file; use another")
        file = self._path.open("a+b")
        try:
            self._lock(file)
            self._read_places(file)
        except BaseException:
            file.close()
            raise
        self._file = file

    def _lock(self, file: BinaryIO) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultFileError(f"{self._path} is in use by another run") from None

    def _read_places(self, file: BinaryIO) -> None:
        file.seek(0)
        place = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                # A crash came in the middle of it. What is written next begins a line.
                file.truncate(place)
                break
            try:
                data = json.loads(line)
                key = (int(data["index"]), str(data["digest"]))
                whole = isinstance(data["completion"], dict)
            except (ValueError, KeyError, TypeError):
                whole = False
            if not whole:
                raise ResultFileError(
                    f"{self._path}, line {number}, is no result; use another file"
                )
            self._places[key] = (place, len(line))
            place += len(line)
        self._size = place

    async def find(self, index: int, digest: str) -> ChatCompletion | None:
        """The result of a request, if an earlier run has got it."""
        place = self._places.get((index, digest))
        return None if place is None else await self._in_thread(self._read, *place)

    def _read(self, place: int, length: int) -> ChatCompletion:
        with self._path.open("rb") as file:
            file.seek(place)
            line = file.read(length)
        try:
            data: Any = json.loads(line)
            return ChatCompletion.model_validate(data["completion"])
        except (ValueError, KeyError, TypeError):
            raise ResultFileError(f"{self._path} was changed during the run") from None

    async def add(self, index: int, digest: str, completion: ChatCompletion) -> None:
        """Writes a result. Once it returns, the result is on the disk.

        What waits to be written at the same time is written together. A cancellation leaves the
        writing under way.

        Raises:
            ResultFileError: it can't be written.
        """
        record = {
            "index": index,
            "digest": digest,
            "completion": completion.model_dump(mode="json", by_alias=True, exclude_unset=True),
        }
        self._pending.append(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        earlier = self._writing
        if earlier is not None:
            await _settled(earlier)
        if self._writing is earlier:
            self._writing = asyncio.create_task(self._write())
        assert self._writing is not None
        await asyncio.shield(self._writing)

    async def _write(self) -> None:
        lines, self._pending = self._pending, []
        if lines:
            await self._in_thread(self._append, b"".join(lines))

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        self._check_unchanged(self._file)
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._size += len(data)
        self._check_unchanged(self._file)

    def _check_unchanged(self, file: BinaryIO) -> None:
        """Sees that the file is still the one of that name, and holds what was written."""
        try:
            named = self._path.stat()
        except FileNotFoundError:
            raise ResultFileError(f"{self._path} was deleted during the run") from None
        ours = os.fstat(file.fileno())
        if not os.path.samestat(named, ours) or ours.st_size != self._size:
            raise ResultFileError(f"{self._path} was replaced or changed during the run")

    async def aclose(self) -> None:
        """Writes what waits to be written, and closes the file."""
        if self._writing is not None:
            await _settled(self._writing)
        if self._file is not None:
            await self._in_thread(self.finish)

    def close_soon(self) -> None:
        """Does so once what is being written has been, on its loop, for who can't wait."""
        if self._writing is None or self._writing.done():
            asyncio.get_running_loop().run_in_executor(None, self.finish)
        else:
            self._writing.add_done_callback(lambda _: self.close_soon())

    def finish(self) -> None:
        """Writes what calls left that were cancelled before their turn, and closes the file."""
        file, lines = self._file, self._pending
        if file is None:
            return
        self._pending = []
        try:
            if lines:
                self._append(b"".join(lines))
        finally:
            self._file = None
            file.close()


async def _settled(task: asyncio.Task[None]) -> None:
    """Waits for a task's end, whatever that is."""
    await asyncio.wait([task])
