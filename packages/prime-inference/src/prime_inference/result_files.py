"""Results of requests in a file of JSON lines, from which a later run goes on."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
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


def digest_of(body: bytes) -> str:
    """What a request's body says, whatever the order of its fields."""
    canonical = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


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

    async def find(self, index: int, digest: str) -> ChatCompletion | None:
        """The result of a request, if an earlier run has got it."""
        place = self._places.get((index, digest))
        return None if place is None else await self._in_thread(self._read, *place)

    def _read(self, place: int, length: int) -> ChatCompletion:
        with self._path.open("rb") as file:
            file.seek(place)
            data: Any = json.loads(file.read(length))
        return ChatCompletion.model_validate(data["completion"])

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
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())

    async def aclose(self) -> None:
        """Writes what waits to be written, and closes the file."""
        if self._writing is not None:
            await _settled(self._writing)
        if self._file is not None:
            try:
                await self._write()  # of calls that were cancelled before their turn
            finally:
                file, self._file = self._file, None
                await self._in_thread(file.close)


async def _settled(task: asyncio.Task[None]) -> None:
    """Waits for a task's end, whatever that is."""
    await asyncio.wait([task])
