"""Request bodies that are read while they are sent, and never held whole."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

__all__ = ["Progress", "Upload", "closing", "multipart"]

# What is handed to the network at once. An idle limit begins anew with each piece, so that
# one piece must get through a slow line in much less.
PIECE = 64 * 1024

# Told of bytes that are done, and of bytes in all where that is known.
Progress: TypeAlias = "Callable[[int, int | None], object]"


@contextlib.asynccontextmanager
async def closing(source: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Closes an iterator when it is left, also before its end, if it can be closed."""
    try:
        yield source
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


class Upload:
    """A request body made of chunks.

    Args:
        open: makes an iterator over the chunks, from the first on. For a body that can't rewind
            it is called once.
        size: bytes in all; None sends the body in chunked encoding.
        rewindable: whether ``open`` can be called again, so that the request may be repeated.

    Attributes:
        failure: what reading the source raised, if that is why a request broke off.
    """

    def __init__(
        self, open: Callable[[], AsyncIterator[bytes]], *, size: int | None, rewindable: bool
    ) -> None:
        self._open = open
        self.size = size
        self.rewindable = rewindable
        self.failure: Exception | None = None
        self._begun = False

    @property
    def spent(self) -> bool:
        """Whether it has begun to be sent and can't be sent again."""
        return self.failure is not None or (self._begun and not self.rewindable)

    async def chunks(
        self, sending: Callable[[], None], reading: Callable[[], None]
    ) -> AsyncGenerator[bytes, None]:
        """Yields the chunks of one attempt.

        Args:
            sending: called before a chunk is handed to the network.
            reading: called before the source is asked for more: its slowness is not the
                network's.
        """
        self._begun = True
        reading()
        try:
            async with closing(self._open()) as source:
                async for chunk in source:
                    for start in range(0, len(chunk), PIECE):
                        sending()
                        yield chunk[start : start + PIECE]
                    reading()
                sending()  # and then waits for the answer
        except Exception as error:
            self.failure = error
            raise

    def framed(self, head: bytes, tail: bytes) -> Upload:
        """The same body between two others."""

        async def chunks() -> AsyncIterator[bytes]:
            yield head
            async with closing(self._open()) as source:
                async for chunk in source:
                    yield chunk
            yield tail

        size = None if self.size is None else len(head) + self.size + len(tail)
        return Upload(chunks, size=size, rewindable=self.rewindable)

    def watched(self, progress: Progress) -> Upload:
        """The same body, which tells how much of it has been handed to the network.

        A request that is repeated begins at 0 again.
        """

        async def chunks() -> AsyncIterator[bytes]:
            done = 0
            progress(done, self.size)
            async with closing(self._open()) as source:
                async for chunk in source:
                    for start in range(0, len(chunk), PIECE):
                        piece = chunk[start : start + PIECE]
                        yield piece
                        done += len(piece)
                        progress(done, self.size)

        return Upload(chunks, size=self.size, rewindable=self.rewindable)


def multipart(
    upload: Upload,
    *,
    field: str,
    filename: str,
    headers: Mapping[str, str] = MappingProxyType({"Content-Type": "application/octet-stream"}),
    json_fields: Mapping[str, bytes] = MappingProxyType({}),
) -> tuple[Upload, str]:
    """A body as the one file of an HTML form.

    Args:
        upload: the file's content.
        field: the form field's name, plain ASCII.
        filename: what the form calls the file; any characters.
        headers: of the file's part.
        json_fields: fields that come before the file, by name, as JSON.

    Returns:
        The form, and its content type.
    """
    boundary = uuid.uuid4().hex
    disposition = f'form-data; name="{field}"; filename="{_quoted(filename)}"'
    head = b"".join(
        _part(boundary, f'form-data; name="{name}"', {"Content-Type": "application/json"})
        + value
        + b"\r\n"
        for name, value in json_fields.items()
    ) + _part(boundary, disposition, headers)
    tail = f"\r\n--{boundary}--\r\n".encode()
    return upload.framed(head, tail), f"multipart/form-data; boundary={boundary}"


def _part(boundary: str, disposition: str, headers: Mapping[str, str]) -> bytes:
    """The beginning of a part of a form."""
    lines = [f"--{boundary}", f"Content-Disposition: {disposition}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "\r\n"]).encode("utf-8", "replace")


def _quoted(filename: str) -> str:
    """A file name as HTML forms write it: what would end the header or the quotes is escaped."""
    return "".join(
        f"%{ord(char):02X}" if char in '"\x7f' or char < " " else char for char in filename
    )
