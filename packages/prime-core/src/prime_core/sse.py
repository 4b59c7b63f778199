"""Server-sent events out of a stream of bytes, after the rules of the WHATWG's HTML standard."""

from __future__ import annotations

import codecs

from prime_core.errors import APIResponseError

__all__ = ["MAX_EVENT", "ErrorData", "EventParser"]

# No event of the platform is near it; one without an end must not fill the memory.
MAX_EVENT = 64 * 1024 * 1024


class ErrorData(bytes):
    """Data of an event of the type ``error``."""

    __slots__ = ()


class EventParser:
    """Reads events from bytes that come in any pieces: LF, CRLF and lone CR end a line.

    An event is its data, several lines joined by a line feed; data that is not UTF-8 is left as
    it is. Of the types only ``error`` is told, as `ErrorData`: no other changes what data means.
    A line that is a JSON object, without a field's name before it, counts as data. Fields that
    serve to resume a stream are ignored: no stream of the platform can be resumed.
    """

    # Thousands of streams are read in turn, so that what one needs is rarely in a cache.
    __slots__ = ("_after_cr", "_clean", "_data", "_line", "_size", "_start", "_type")

    def __init__(self) -> None:
        self._start: bytes | None = b""  # what may become a byte order mark
        self._line: list[bytes] = []  # the pieces of a line that has no end yet
        self._after_cr = False  # whether a line feed would belong to the line end before it
        self._data: list[bytes] = []
        self._type = b""
        self._size = 0  # bytes of the event that has no end yet
        self._clean = False  # whether the next byte begins an event, as nearly always

    def feed(self, piece: bytes) -> list[bytes]:
        """Takes the next bytes and returns the events that they complete.

        Raises:
            APIResponseError: an event is larger than 64 MiB.
        """
        if self._clean and piece.endswith(b"\n\n") and b"\r" not in piece:
            if piece.startswith(b"data: ") and piece.find(b"\n") == len(piece) - 2:
                return [piece[6:-2]]
            return self._take_blocks(piece[:-2], [])
        events = self._take_piece(piece)
        self._clean = not (
            self._size or self._data or self._type or self._after_cr or self._start is not None
        )
        return events

    def _take_piece(self, piece: bytes) -> list[bytes]:
        if self._start is not None:
            piece = self._begin(piece)
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        self._size += len(piece)
        if b"\r" in piece:
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in piece:
            if piece:
                self._line.append(piece)
            self._check_size()
            return []
        if self._line:
            piece = b"".join([*self._line, piece])
            self._line.clear()
        events: list[bytes] = []
        if not self._data and not self._type:
            blocks, blank, rest = piece.rpartition(b"\n\n")
            if blank:
                piece = rest
                self._take_blocks(blocks, events)
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._take(line, events)
        if rest:
            self._line.append(rest)
        if not self._data:
            self._size = len(rest)
        self._check_size()
        return events

    def finish(self) -> bytes | None:
        """Ends the input, and returns the event that lacks its blank line, if there is one.

        The standard drops it. Servers forget that line, though, so that the caller judges
        whether it is whole.
        """
        line = b"".join([self._start or b"", *self._line])
        events: list[bytes] = []
        if line:
            self._take(line, events)
        self._take(b"", events)
        self._line.clear()
        return events[0] if events else None

    def _begin(self, piece: bytes) -> bytes:
        """Drops the byte order mark, once there are enough bytes to know it."""
        piece = (self._start or b"") + piece
        if len(piece) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(piece):
            self._start = piece
            return b""
        self._start = None
        return piece.removeprefix(codecs.BOM_UTF8)

    def _take_blocks(self, blocks: bytes, events: list[bytes]) -> list[bytes]:
        """Takes whole events; nearly all are one line of data, which needs no more than this."""
        for block in blocks.split(b"\n\n"):
            if block.startswith(b"data:") and b"\n" not in block:
                start = 6 if block.startswith(b"data: ") else 5
                events.append(block[start:])
            else:
                for line in block.split(b"\n"):
                    self._take(line, events)
                self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._data:
                data = b"\n".join(self._data)
                events.append(ErrorData(data) if self._type == b"error" else data)
                self._data.clear()
            self._type = b""
        elif line.startswith(b"{"):
            self._data.append(line)
        else:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif name == b"event":
                self._type = value.removeprefix(b" ")

    def _check_size(self) -> None:
        if self._size > MAX_EVENT:
            raise APIResponseError(f"An event is larger than {MAX_EVENT >> 20} MiB.")
