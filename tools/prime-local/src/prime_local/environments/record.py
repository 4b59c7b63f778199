"""Records of what an environment holds, with their wire forms."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, field

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError

SHORTEST_HASH = 8


@dataclass
class Artifact:
    """A wheel or a source archive that was announced.

    Args:
        kind: ``wheel`` or ``source``.
        asked: the request that announced it.
        signature: of its presigned address.
        complete: whether its upload was confirmed.
    """

    id: str
    kind: str
    environment_id: str
    asked: JsonObject
    signature: str
    created_at: str
    complete: bool = False

    @property
    def content_hash(self) -> str:
        return str(self.asked["content_hash"])

    def to_ref(self) -> JsonObject:
        """Return the `HubVersionRef` object of the contract."""
        return {
            "semantic_version": self.asked.get("semantic_version"),
            "content_hash": self.content_hash,
            "created_at": self.created_at,
        }

    def to_version(self, artifacts: int) -> JsonObject:
        """Return the `HubVersion` object of the contract."""
        return {
            "version": self.asked.get("semantic_version") or self.content_hash[:SHORTEST_HASH],
            "semantic_version": self.asked.get("semantic_version"),
            "sha256": self.content_hash,
            "created_at": self.created_at,
            "size": artifacts,
        }


@dataclass
class Value:
    """A secret or a variable.

    Args:
        kind: ``secret`` or ``variable``.
        link: the account's secret that it stands for.
    """

    id: str
    kind: str
    environment_id: str
    name: str
    value: str = field(repr=False)
    description: str | None
    created_at: str
    updated_at: str
    link: str | None = None

    def to_wire(self) -> JsonObject:
        """Return the `HubSecret` or `HubVariable` object of the contract."""
        wire: JsonObject = {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        }
        if self.kind == "variable":
            return {**wire, "value": self.value}
        return {**wire, "source": "environment" if self.link is None else "global-linked"}


def inspect_source(archive: bytes, version_id: str, path: str, max_bytes: int) -> JsonObject:
    """Return the `HubInspection` object of a path in a source.

    Raises:
        PlatformError: 404.
    """
    path = path.strip("/")
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
        members = {member.name.removeprefix("./"): member for member in tar}
        if path in members and members[path].isfile():
            content = tar.extractfile(members[path])
            data = content.read() if content is not None else b""
            return {
                "kind": "file",
                "path": path,
                "version_id": version_id,
                "entry": _entry(path, False, len(data)),
                "entries": None,
                "content": data[:max_bytes].decode("utf-8", "replace"),
                "encoding": "utf-8",
                "truncated": len(data) > max_bytes,
                "total_bytes": len(data),
            }
        start = f"{path}/" if path else ""
        below = {name: each for name, each in members.items() if name.startswith(start)}
    if not below:
        raise PlatformError(404, "There is nothing there")
    entries = {}
    for name, member in sorted(below.items()):
        top, slash, _ = name[len(start) :].partition("/")
        entries[top] = _entry(start + top, bool(slash) or member.isdir(), member.size)
    return {
        "kind": "directory",
        "path": path,
        "version_id": version_id,
        "entry": None,
        "entries": list(entries.values()),
        "content": None,
        "encoding": None,
        "truncated": False,
        "total_bytes": None,
    }


def _entry(path: str, is_directory: bool, size: int) -> JsonObject:
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "is_directory": is_directory,
        "size": None if is_directory else size,
    }
