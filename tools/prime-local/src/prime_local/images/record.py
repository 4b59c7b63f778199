"""The records of images and of their builds, with their wire forms."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any

from prime_local.contract.document import JsonObject
from prime_local.images.dockerfile import ImageSettings
from prime_local.images.references import ImageKey, ImageOwner
from prime_local.sandboxes.commands import Command
from prime_local.sandboxes.isolation.base import ModeName
from prime_local.sandboxes.record import wire_date


class BuildStatus(str, Enum):
    """States of a build; the last three are final."""

    PENDING = "PENDING"
    UPLOADING = "UPLOADING"
    BUILDING = "BUILDING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def final(self) -> bool:
        return self in (BuildStatus.COMPLETED, BuildStatus.FAILED, BuildStatus.CANCELLED)


@dataclass(frozen=True)
class Content:
    """What sandboxes of an image start with.

    Args:
        settings: environment, working directory and account.
        folder: name of the folder that keeps the files; None when there are none but the host's.
        layout: the isolation mode, on which depends what the files look like.
        tops: folders at the root that are parts of their own, where the root is read-only.
        size_bytes: size of the files.
    """

    settings: ImageSettings = field(default_factory=ImageSettings)
    folder: str | None = None
    layout: ModeName | None = None
    tops: tuple[str, ...] = ()
    size_bytes: int = 0


@dataclass
class Build:
    """A build, and the image that it is to make."""

    id: str
    artifact_id: str
    key: ImageKey
    platform: str
    created_at: datetime
    visibility: str | None = None
    source: str | None = None
    dockerfile_path: str = "Dockerfile"
    status: BuildStatus = BuildStatus.PENDING
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error_message: str | None = None

    def to_wire(self) -> JsonObject:
        """Return the `ImageBuild` object of the contract."""
        artifact = {"id": self.artifact_id, "artifactType": "VM_SANDBOX", **self._progress()}
        return {
            "id": self.id,
            "imageName": self.key.name,
            "imageTag": self.key.tag,
            **self._progress(),
            "artifacts": [{**artifact, "fullImagePath": self.key.reference}],
        }

    def to_row(self, visibility: str) -> JsonObject:
        """Return the `ImageRow` object of the contract."""
        return {
            "id": self.artifact_id,
            **_coordinates(self.key),
            **self._progress(),
            "sizeBytes": None,
            "visibility": self.visibility or visibility,
            "pushedAt": None,
        }

    def _progress(self) -> JsonObject:
        return {
            "status": self.status.value,
            "errorMessage": self.error_message,
            "createdAt": wire_date(self.created_at),
            "startedAt": self.started_at and wire_date(self.started_at),
            "completedAt": self.completed_at and wire_date(self.completed_at),
        }


@dataclass
class Image:
    """An image that is ready for use."""

    id: str
    key: ImageKey
    visibility: str
    content: Content
    created_at: datetime
    started_at: datetime
    pushed_at: datetime

    def to_row(self) -> JsonObject:
        """Return the `ImageRow` object of the contract."""
        pushed = wire_date(self.pushed_at)
        return {
            "id": self.id,
            **_coordinates(self.key),
            "status": BuildStatus.COMPLETED.value,
            "errorMessage": None,
            "createdAt": wire_date(self.created_at),
            "startedAt": wire_date(self.started_at),
            "completedAt": pushed,
            "pushedAt": pushed,
            "sizeBytes": self.content.size_bytes,
            "visibility": self.visibility,
        }


def as_the_image_says(
    command: Command, settings: ImageSettings, variables: Mapping[str, str]
) -> Command:
    """Return a command with what an image and its sandbox set, where it says nothing itself.

    Args:
        command: the command.
        settings: the image's.
        variables: the sandbox's, which go before the image's.
    """
    directory = command.cwd
    if settings.workdir is not None:
        directory = posixpath.join(settings.workdir, directory or "")
    environment = {**settings.env, **variables, **command.env}
    return replace(command, env=environment, cwd=directory, user=command.user or settings.user)


def coordinate(key: ImageKey, visibility: str) -> JsonObject:
    """Return the `ImageCoordinate` object of the contract."""
    return {
        "owner": key.owner.to_wire(),
        "name": key.name,
        "tag": key.tag,
        "visibility": visibility,
    }


def _coordinates(key: ImageKey) -> JsonObject:
    return {
        "artifactType": "VM_SANDBOX",
        "imageName": key.name,
        "imageTag": key.tag,
        "fullImagePath": key.reference,
        "displayRef": key.reference,
        "ownerType": key.owner.type,
        "teamId": key.owner.team_id,
    }


def dump(record: Build | Image) -> JsonObject:
    """Return a record in a form that JSON can hold."""
    plain: JsonObject = _plain(record)
    return plain


def load_build(kept: Mapping[str, Any]) -> Build:
    """Read what `dump` returned for a build."""
    return Build(**{**_loaded(kept), "status": BuildStatus(kept["status"])})


def load_image(kept: Mapping[str, Any]) -> Image:
    """Read what `dump` returned for an image."""
    content = kept["content"]
    settings = ImageSettings(**content["settings"])
    read = Content(**{**content, "settings": settings, "tops": tuple(content["tops"])})
    return Image(**{**_loaded(kept), "content": read})


def _loaded(kept: Mapping[str, Any]) -> JsonObject:
    key = kept["key"]
    dates = {
        name: datetime.fromisoformat(value)
        for name, value in kept.items()
        if name.endswith("_at") and value is not None
    }
    return {
        **kept,
        **dates,
        "key": ImageKey(ImageOwner(**key["owner"]), key["name"], key["tag"]),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(inner) for name, inner in vars(value).items()}
    return dict(value) if isinstance(value, dict) else value
