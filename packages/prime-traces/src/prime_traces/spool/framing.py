"""How a segment's file holds records so that a torn end shows.

A frame is the payload's length, a checksum and the payload. The first payload is the header,
each other one a record's line. A frame's checksum runs on from the one before it, and the
header holds a random number, so that a frame proves all that stands before it and nothing
that lay on the disk earlier passes for one.
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

__all__ = ["Header", "Scan", "framed_size", "frames", "read_header", "scan"]

VERSION = 1
_PREFIX = struct.Struct("<II")
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
        header: None when even that is torn.
        lines: the whole records, in order.
        end: where the last whole frame ends.
        checksum: of the last whole frame.
    """

    header: Header | None
    lines: list[memoryview]
    end: int
    checksum: int


def framed_size(line: bytes) -> int:
    """Bytes that a record takes in a segment."""
    return _PREFIX.size + len(line)


def frames(payloads: Iterable[bytes | memoryview], checksum: int) -> tuple[bytes, int]:
    """Payloads as frames that follow the one with this checksum.

    Returns:
        The bytes, and the checksum of the last frame.
    """
    parts = []
    for payload in payloads:
        checksum = zlib.crc32(payload, checksum)
        parts += [_PREFIX.pack(len(payload), checksum), payload]
    return b"".join(parts), checksum


def scan(data: bytes) -> Scan:
    """Reads frames up to the first that is torn.

    Raises:
        SpoolError: another version wrote them.
    """
    view = memoryview(data)
    payloads: list[memoryview] = []
    at, checksum = 0, 0
    while at + _PREFIX.size <= len(data):
        size, expected = _PREFIX.unpack_from(data, at)
        payload = view[at + _PREFIX.size : at + _PREFIX.size + size]
        # A run of zeros, as a power cut leaves it, would else be a whole frame of nothing.
        if not size or len(payload) < size:
            break
        found = zlib.crc32(payload, checksum)
        if found != expected:
            break
        payloads.append(payload)
        at, checksum = at + _PREFIX.size + size, found
    header = _decode(payloads[0]) if payloads else None
    return Scan(header, payloads[1:], at, checksum)


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
