"""How a segment's file holds records so that a torn end and a damaged one show.

A frame is the payload's length, a checksum and the payload. The first payload is the header,
each other one a record's line. A record's checksum runs on from that of the header, which holds
a random number, and covers where the frame stands. So each record proves itself, whatever became
of those before it, and nothing that lay on the disk earlier passes for one.
"""

from __future__ import annotations

import json
import secrets
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from prime_traces.errors import SpoolError

__all__ = [
    "Header",
    "Scan",
    "framed_size",
    "header_frame",
    "read_header",
    "record_frames",
    "scan",
]

VERSION = 1
_PREFIX = struct.Struct("<II")
_OFFSET = struct.Struct("<Q")
# A damaged length must not have a whole segment read.
_LONGEST_HEADER = 1024 * 1024


@dataclass(frozen=True)
class Header:
    """What holds for every record of a segment.

    Attributes:
        line_format: the value of a `LineFormat`.
        schema_version: of the records.
        context: stored with each record.
        team: id of the team that the records belong to, empty for the user's own.
    """

    line_format: str
    schema_version: int = 1
    context: Mapping[str, str] = field(default_factory=dict)
    team: str = ""

    def encode(self) -> bytes:
        """The header's payload, another one each time."""
        salt = secrets.token_hex(8)
        return json.dumps({"version": VERSION, "salt": salt, **vars(self)}).encode()


@dataclass(frozen=True)
class Scan:
    """What a segment's bytes hold.

    Attributes:
        header: None when it is torn or damaged.
        lines: the whole records, in order.
        damaged: what is left of records that are not what was written.
        end: where the last frame ends; what follows is torn.
        seed: what the records' checksums run on from.
    """

    header: Header | None
    lines: list[memoryview]
    damaged: list[memoryview]
    end: int
    seed: int


def framed_size(line: bytes) -> int:
    """Bytes that a record takes in a segment."""
    return _PREFIX.size + len(line)


def header_frame(header: Header) -> tuple[bytes, int]:
    """What a segment begins with, and what its records' checksums run on from."""
    payload = header.encode()
    seed = zlib.crc32(payload)
    return _PREFIX.pack(len(payload), seed) + payload, seed


def record_frames(lines: Iterable[bytes | memoryview], at: int, seed: int) -> bytes:
    """Records as frames that begin at this byte of a segment."""
    parts: list[bytes | memoryview] = []
    for line in lines:
        parts += [_PREFIX.pack(len(line), _checksum(line, at, seed)), line]
        at += _PREFIX.size + len(line)
    return b"".join(parts)


def _checksum(line: bytes | memoryview, at: int, seed: int) -> int:
    return zlib.crc32(line, zlib.crc32(_OFFSET.pack(at), seed))


def scan(data: bytes) -> Scan:
    """Reads all frames that are whole; what lies between two of them is damaged.

    Raises:
        SpoolError: another version wrote them.
    """
    view = memoryview(data)
    if len(data) < _PREFIX.size:
        return Scan(None, [], [], 0, 0)
    size, seed = _PREFIX.unpack_from(view)
    payload = view[_PREFIX.size : _PREFIX.size + size]
    found = zlib.crc32(payload)
    if len(payload) == size and found == seed:
        return Scan(_decode(payload), *_records(data, _PREFIX.size + size, seed))
    # The header is damaged, or its length, or the checksum that was written for it.
    starts = (_PREFIX.size + size, _PREFIX.size) if len(payload) == size else (_PREFIX.size,)
    tries = [_records(data, start, seed) for start in starts]
    records = max(tries, key=lambda each: len(each[0]))
    if not records[0]:
        other = _records(data, starts[0], found)
        if other[0]:
            return Scan(_decode(payload), *other)
    if not records[0] and not records[1]:
        return Scan(None, [], [], 0, 0)
    return Scan(None, *records)


def _records(
    data: bytes, at: int, seed: int
) -> tuple[list[memoryview], list[memoryview], int, int]:
    """The fields of a `Scan` behind the header, of the frames from this byte on."""
    view = memoryview(data)
    lines: list[memoryview] = []
    damaged: list[memoryview] = []
    while at < len(data):
        line = _record(view, at, seed)
        if line is not None:
            lines.append(line)
            at += _PREFIX.size + len(line)
        elif (following := _following(data, at, seed)) is not None:
            damaged.append(view[min(at + _PREFIX.size, following) : following])
            at = following
        else:
            break
    return lines, damaged, at, seed


def _record(view: memoryview, at: int, seed: int) -> memoryview | None:
    """The line of a whole frame."""
    if at + _PREFIX.size > len(view):
        return None
    size, expected = _PREFIX.unpack_from(view, at)
    line = view[at + _PREFIX.size : at + _PREFIX.size + size]
    # A run of zeros, as a power cut leaves it, is no frame of nothing.
    whole = size and len(line) == size and _checksum(line, at, seed) == expected
    return line if whole else None


def _following(data: bytes, at: int, seed: int) -> int | None:
    """Where the frame behind a damaged one begins; None when this is the torn end.

    It is behind a line feed, or, if the damaged one has lost its own, where its length says. The
    first of them that there is: a damaged length may name one further on.
    """
    view = memoryview(data)
    named = at
    if at + _PREFIX.size <= len(data):
        named += _PREFIX.size + _PREFIX.unpack_from(view, at)[0]
    whole = named > at and _record(view, named, seed) is not None
    behind = at
    while behind := data.find(b"\n", behind) + 1:
        if whole and behind > named:
            break
        if behind == named or _record(view, behind, seed) is not None:
            return behind
    return named if whole else None


def read_header(file: BinaryIO) -> Header | None:
    """The header at the start of a segment's file, None when it is torn."""
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        return None
    size, _ = _PREFIX.unpack(prefix)
    return scan(prefix + file.read(min(size, _LONGEST_HEADER))).header


def _decode(payload: memoryview) -> Header:
    found = json.loads(bytes(payload))
    if found["version"] != VERSION:
        raise SpoolError(
            f"the spool's directory has segments of version {found['version']}, and this one "
            f"knows version {VERSION}: let the version that wrote them upload them"
        )
    return Header(
        line_format=found["line_format"],
        schema_version=found["schema_version"],
        context=found["context"],
        team=found["team"],
    )
