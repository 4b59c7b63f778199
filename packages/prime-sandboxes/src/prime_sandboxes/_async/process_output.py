"""What a live process writes, as bytes and as text."""

from __future__ import annotations

from collections.abc import AsyncIterator

from prime_core.buffers import ByteBuffer, ByteReader, Gap
from prime_core.lines import LineReader
from prime_core.text import TextDecoder

__all__ = ["AsyncProcessOutput"]


class AsyncProcessOutput:
    """What a process writes to one of its streams: an async iterator of bytes.

    What arrives is kept until it is read, up to the ``output_buffer`` of the process. While
    an iteration over it is under way, a full buffer makes the process wait. While there is
    none, or one has taken nothing for 60 s, the oldest bytes make room for new ones, so that
    the exit code never waits for a reader; `gaps` tells. With a ``spill_folder`` the rest goes
    to a temporary file, and neither happens. Made by `AsyncSandboxProcess`.

    Args:
        buffer: what has arrived.
    """

    def __init__(self, buffer: ByteBuffer) -> None:
        self._buffer = buffer
        self._own: ByteReader | None = None

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Where bytes are missing: dropped unread, or written while the connection was lost."""
        return self._buffer.gaps

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._buffer.reader()

    async def __anext__(self) -> bytes:
        """The next bytes, as many as have arrived, at most 256 KiB."""
        if self._own is None:
            self._own = self._buffer.reader()
        return await self._own.__anext__()

    async def text(self) -> AsyncIterator[str]:
        """Reads it as UTF-8, piece by piece as it arrives.

        Characters that arrive in parts are put together; what is not UTF-8 becomes U+FFFD.
        """
        decoder = TextDecoder()
        reader = self._buffer.reader()
        async for piece in reader:
            # Half a character before a gap does not belong to what is behind it.
            before = decoder.finish() if reader.behind_gap else ""
            if text := before + decoder.feed(piece):
                yield text
        if rest := decoder.finish():
            yield rest

    def lines(self) -> AsyncIterator[str]:
        """Reads it as UTF-8, line by line, without the line ends.

        A line of more than 1 MiB comes in pieces. What follows the last line that was taken
        stays for whoever reads next.
        """
        return LineReader(self._buffer)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "the output of a process can't be pickled: it arrives here; send what was read of it"
        )

    def __repr__(self) -> str:
        return f"AsyncProcessOutput({len(self.gaps)} gaps)"
