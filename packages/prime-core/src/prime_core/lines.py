"""Lines of text out of a stream of bytes."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator

from prime_core.buffers import ByteBuffer

__all__ = ["LONGEST_LINE", "LineReader"]

# A line that does not end is handed out in pieces of so many bytes.
LONGEST_LINE = 1024 * 1024


class _Unread:
    """What was taken from the buffer and not handed out yet.

    Attributes:
        before: the start of the first line, where a gap divides it from the rest.
        lines: whole lines.
        next: which of them comes next.
        rest: the start of a line.
    """

    def __init__(self) -> None:
        self.before: list[bytes] = []
        self.lines: list[bytes] = []
        self.next = 0
        self.rest = b""

    def give_back(self) -> bytes:
        """Lets go of it, for whoever reads on."""
        whole = [line + b"\n" for line in self.lines[self.next :]]
        data = b"".join([*self.before, *whole, self.rest])
        self.before, self.lines, self.next, self.rest = [], [], 0, b""
        return data

    def text(self, line: bytes) -> str:
        """The text of the first line. Half a character before a gap has no part behind it."""
        parts = [*self.before, line]
        self.before = []
        return "".join([part.decode("utf-8", "replace") for part in parts])


class LineReader(AsyncIterator[str]):
    """Reads a buffer as UTF-8, line by line, without the line ends.

    What is not UTF-8 becomes U+FFFD. Whoever reads on after it gets what it has not handed out.

    Args:
        buffer: the bytes.
    """

    def __init__(self, buffer: ByteBuffer) -> None:
        self._buffer = buffer
        self._reader = buffer.reader()
        self._unread = _Unread()

    async def __anext__(self) -> str:
        unread = self._unread
        while unread.next >= len(unread.lines):
            if len(unread.rest) > LONGEST_LINE:
                return self._cut()
            self._buffer.withdraw(unread)
            try:
                piece = await self._reader.__anext__()
            except StopAsyncIteration:
                if not unread.before and not unread.rest:
                    raise
                last, unread.rest = unread.rest, b""
                return unread.text(last)
            finally:
                self._buffer.lend(unread)
            if self._reader.behind_gap and unread.rest:
                unread.before.append(unread.rest)
                unread.rest = b""
            *unread.lines, unread.rest = (unread.rest + piece).split(b"\n")
            unread.next = 0
        line = unread.lines[unread.next]
        unread.next += 1
        return unread.text(line) if unread.before else line.decode("utf-8", "replace")

    def _cut(self) -> str:
        """A piece of a line that goes on, up to a whole character."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(self._unread.rest)
        self._unread.rest = decoder.getstate()[0]
        return self._unread.text(b"") + text

    async def aclose(self) -> None:
        """Stops reading."""
        await self._reader.aclose()
