"""What the storage knows of objects and of unfinished uploads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prime_local.rows import from_row, to_row
from prime_local.s3.blobs import Segment


@dataclass(frozen=True)
class Description:
    """What a client says of an object, and reads again."""

    content_type: str = "binary/octet-stream"
    metadata: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredObject:
    """An object.

    Args:
        segments: the files that hold it, in their order.
        etag: without its quotes.
        checksums: headers that a whole object is answered with.
    """

    bucket: str
    key: str
    segments: list[Segment]
    etag: str
    description: Description
    checksums: dict[str, str]
    modified_at: datetime

    @property
    def id(self) -> str:
        return f"{self.bucket}/{self.key}"

    @property
    def size(self) -> int:
        return sum(size for _, size in self.segments)

    def to_row(self) -> dict[str, Any]:
        return to_row(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> StoredObject:
        return from_row(cls, _read(row))


@dataclass(frozen=True)
class Part:
    """A part of an upload; `md5` is hexadecimal, `checksums` by the names of their headers."""

    blob: str
    size: int
    md5: str
    checksums: dict[str, str]
    modified_at: datetime


@dataclass
class Upload:
    """A multipart upload that is not finished.

    Args:
        algorithm: of the parts' checksums, as clients name it; empty for none.
    """

    id: str
    bucket: str
    key: str
    description: Description
    algorithm: str
    created_at: datetime
    parts: dict[int, Part] = field(default_factory=dict)

    def to_row(self) -> dict[str, Any]:
        parts = {str(number): to_row(part) for number, part in self.parts.items()}
        return {**to_row(self), "parts": parts}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Upload:
        parts = {int(number): from_row(Part, part) for number, part in row["parts"].items()}
        return from_row(cls, {**_read(row), "parts": parts})


def _read(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "description": Description(**row["description"])}
