"""Environments of the hub, their versions, secrets and variables."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field, field_validator, model_validator

from prime_core.models import OpenEnum, ResponseModel, StrEnum, UtcDatetime
from prime_train.models.wrapped import Wrapped

__all__ = [
    "Environment",
    "EnvironmentFile",
    "EnvironmentFork",
    "EnvironmentInspection",
    "EnvironmentList",
    "EnvironmentListItem",
    "EnvironmentOwner",
    "EnvironmentSecret",
    "EnvironmentSecretLink",
    "EnvironmentStatus",
    "EnvironmentVariable",
    "EnvironmentVersion",
    "EnvironmentVersionRef",
    "EnvironmentVisibility",
    "PublishedEnvironment",
    "ResolvedEnvironment",
]


class EnvironmentVisibility(StrEnum):
    """Who can see an environment; newer kinds are kept as plain strings."""

    PUBLIC = "PUBLIC"
    PRIVATE = "PRIVATE"


class EnvironmentOwner(ResponseModel):
    """Who an environment belongs to.

    Attributes:
        name: the owner's slug.
        type: ``user`` or ``team``.
    """

    name: str
    type: str | None = None


class ResolvedEnvironment(Wrapped):
    """Which environment a name means.

    Attributes:
        id: names it.
        owner: who it belongs to.
        created: whether it was made just now.
    """

    id: str
    owner: EnvironmentOwner | None = None
    created: bool = False


class EnvironmentListItem(ResponseModel):
    """An environment in a list.

    Attributes:
        id: names it.
        owner: who it belongs to.
        name: its name.
        description: its maker's words.
        visibility: who can see it.
        latest_version: its newest version.
        stars: how many like it.
        updated_at: time of the last change.
        tags: its labels.
    """

    id: str | None = None
    owner: EnvironmentOwner
    name: str
    description: str | None = None
    visibility: OpenEnum[EnvironmentVisibility] | None = None
    latest_version: str | None = None
    stars: int = 0
    updated_at: UtcDatetime | None = None
    tags: list[str] | None = None

    @property
    def slug(self) -> str:
        """Owner and name, as ``owner/name``."""
        return f"{self.owner.name}/{self.name}"


class EnvironmentList(ResponseModel):
    """A part of the list of environments.

    Attributes:
        environments: the environments.
        total_count: how many the whole list holds.
    """

    environments: list[EnvironmentListItem] = Field(
        default_factory=list, validation_alias=AliasChoices("data", "environments")
    )
    total_count: int = Field(0, validation_alias=AliasChoices("total_count", "total"))


class EnvironmentVersionRef(ResponseModel):
    """A version, in short.

    Attributes:
        semantic_version: such as ``0.1.0``.
        content_hash: SHA-256 of its source.
        created_at: time of its publication.
    """

    semantic_version: str | None = None
    content_hash: str | None = Field(None, validation_alias=AliasChoices("content_hash", "sha256"))
    created_at: UtcDatetime | None = None


class Environment(Wrapped):
    """An environment at one version.

    Attributes:
        id: names it.
        owner: who it belongs to.
        name: its name.
        visibility: who can see it.
        semantic_version: the version.
        content_hash: SHA-256 of its source.
        latest_version: the newest version.
        wheel_url: address of the wheel.
        install_index_url: package index to install it from, before ``simple_index_url``.
        simple_index_url: another one.
        url_dependencies: requirements to install besides.
        package_url: address of the source archive.
        metadata: what is known of the package.
    """

    id: str | None = None
    owner: EnvironmentOwner | None = None
    name: str | None = None
    visibility: OpenEnum[EnvironmentVisibility] | None = None
    semantic_version: str | None = Field(
        None, validation_alias=AliasChoices("semantic_version", "semanticVersion", "version")
    )
    content_hash: str | None = None
    latest_version: EnvironmentVersionRef | None = None
    wheel_url: str | None = None
    install_index_url: str | None = None
    simple_index_url: str | None = None
    url_dependencies: list[str] = Field(default_factory=list)
    package_url: str | None = Field(
        None, validation_alias=AliasChoices("tracked_package_url", "package_url")
    )
    metadata: dict[str, Any] | None = None

    @field_validator("latest_version", mode="before")
    @classmethod
    def _read_version(cls, value: object) -> object:
        return {"semantic_version": value} if isinstance(value, str) else value


class EnvironmentStatus(Wrapped):
    """What is known of an environment in short.

    Attributes:
        name: its name.
        description: its maker's words.
        visibility: who can see it.
        latest_version: its newest version.
    """

    name: str | None = None
    description: str | None = None
    visibility: OpenEnum[EnvironmentVisibility] | None = None
    latest_version: EnvironmentVersionRef | None = None


class EnvironmentVersion(ResponseModel):
    """A version of an environment.

    Attributes:
        version: such as ``0.1.0``.
        semantic_version: likewise.
        content_hash: SHA-256 of its source; `AsyncEnvironments.delete_version` takes it.
        created_at: time of its publication.
    """

    version: str
    semantic_version: str | None = None
    content_hash: str | None = Field(None, validation_alias=AliasChoices("sha256", "content_hash"))
    created_at: UtcDatetime | None = None


class VersionList(ResponseModel):
    """All versions of an environment, newest first."""

    data: list[EnvironmentVersion] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _unwrap(cls, value: object) -> object:
        while isinstance(value, dict):
            value = value.get("data", value.get("versions", []))
        return {"data": value}


class EnvironmentFile(ResponseModel):
    """A file or folder of an environment's source.

    Attributes:
        name: its name.
        path: its place in the source.
        is_directory: whether it is a folder.
        size: bytes of a file.
        content_hash: SHA-256 of a file.
    """

    name: str
    path: str | None = None
    is_directory: bool = False
    size: int | None = None
    content_hash: str | None = None


class EnvironmentInspection(Wrapped):
    """A look into an environment's source.

    Attributes:
        kind: ``file`` or ``directory``.
        path: what was looked at.
        version_id: the version.
        entry: the file or folder.
        entries: what a folder holds.
        content: what a file holds.
        encoding: how ``content`` is written: ``utf-8`` or ``base64``.
        truncated: whether the file goes on.
        total_bytes: bytes of the whole file.
    """

    kind: str | None = None
    path: str | None = None
    version_id: str | None = None
    entry: EnvironmentFile | None = None
    entries: list[EnvironmentFile] | None = None
    content: str | None = None
    encoding: str | None = None
    truncated: bool = False
    total_bytes: int | None = None


class EnvironmentFork(Wrapped):
    """A copy of somebody's environment.

    Attributes:
        success: whether it was made.
        message: the platform's words.
        environment_id: the copy.
        version_id: its version.
        name: its name.
        owner: who it belongs to.
        slug: both, as ``owner/name``.
    """

    success: bool = True
    message: str | None = None
    environment_id: str | None = None
    version_id: str | None = None
    name: str | None = None
    owner: EnvironmentOwner | None = None
    slug: str | None = None


class UploadTicket(Wrapped):
    """Where a wheel or a source archive goes.

    Attributes:
        id: the wheel or version.
        upload_url: where to put it; None when it is stored already.
    """

    id: str = Field(validation_alias=AliasChoices("wheel_id", "version_id"))
    upload_url: str | None = Field(None, repr=False)


class Published(Wrapped):
    """Whether a version was published.

    Attributes:
        success: whether it was.
        message: why not.
    """

    success: bool = True
    message: str | None = None


class PublishedEnvironment(ResponseModel):
    """A version that was pushed.

    Attributes:
        environment_id: its environment.
        owner: the environment's owner.
        name: the environment's name.
        version_id: the version.
        version: such as ``0.1.0``.
        content_hash: SHA-256 of its source.
        created: whether the environment was made for it.
    """

    environment_id: str
    owner: EnvironmentOwner | None = None
    name: str
    version_id: str
    version: str
    content_hash: str
    created: bool = False


class EnvironmentSecret(Wrapped):
    """A secret of an environment, without its value.

    Attributes:
        id: names it.
        name: the variable that holds it.
        source: ``environment``, or ``global-linked`` for one of the account.
        description: its maker's words.
        created_at: time of creation.
        updated_at: time of the last change.
    """

    id: str
    name: str
    source: str | None = None
    description: str | None = None
    created_at: UtcDatetime | None = Field(None, alias="createdAt")
    updated_at: UtcDatetime | None = Field(None, alias="updatedAt")

    @model_validator(mode="before")
    @classmethod
    def _drop_value(cls, value: object) -> object:
        # Masked, when it is sent at all; unknown fields are kept, and this must not be.
        if isinstance(value, dict):
            return {name: each for name, each in value.items() if name != "value"}
        return value


class SecretList(ResponseModel):
    """The secrets of an environment."""

    data: list[EnvironmentSecret] = Field(default_factory=list)


class EnvironmentSecretLink(Wrapped):
    """A secret of the account that an environment uses.

    Attributes:
        id: names the link.
        secret_id: the account's secret.
        secret_name: the variable that holds it.
        environment_id: the environment.
        created_at: time of creation.
    """

    id: str | None = None
    secret_id: str = Field(alias="secretId")
    secret_name: str | None = Field(None, alias="secretName")
    environment_id: str | None = Field(None, alias="environmentId")
    created_at: UtcDatetime | None = Field(None, alias="createdAt")


class EnvironmentVariable(Wrapped):
    """A plain variable of an environment, which whoever can read it may know.

    Attributes:
        id: names it.
        name: the variable.
        value: what it holds. Left out of `repr`.
        description: its maker's words.
        created_at: time of creation.
        updated_at: time of the last change.
    """

    id: str
    name: str
    value: str = Field(repr=False)
    description: str | None = None
    created_at: UtcDatetime | None = Field(None, alias="createdAt")
    updated_at: UtcDatetime | None = Field(None, alias="updatedAt")


class VariableList(ResponseModel):
    """The variables of an environment."""

    data: list[EnvironmentVariable] = Field(default_factory=list)
