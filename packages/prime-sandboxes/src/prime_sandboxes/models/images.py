"""Images as they are listed. Follows the page "sandboxes/images"."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from prime_core.models import OpenEnum, ResponseModel, StrEnum, UtcDatetime


class ImageVisibility(StrEnum):
    """Who may use an image: its owner, or every user of the platform."""

    PRIVATE = "PRIVATE"
    PUBLIC = "PUBLIC"


class ImageBuildStatus(StrEnum):
    """State of a build; the last three are final."""

    PENDING = "PENDING"
    UPLOADING = "UPLOADING"
    BUILDING = "BUILDING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


FINAL_BUILD_STATUSES = frozenset(
    {ImageBuildStatus.COMPLETED, ImageBuildStatus.FAILED, ImageBuildStatus.CANCELLED}
)
"""States in which a build stays."""


class ImageArtifactType(StrEnum):
    """What a row of an image is: the file system that sandboxes boot."""

    VM_SANDBOX = "VM_SANDBOX"


class ImageOwnerType(StrEnum):
    """Whose an image is: a user's, a team's or the platform's."""

    PERSONAL = "personal"
    TEAM = "team"
    PLATFORM = "platform"


class ImageListItem(ResponseModel):
    """One row of an image: what is registered, or a build that is under way.

    Attributes:
        id: id of the row.
        artifact_type: an `ImageArtifactType`, or a plain `str` that is not known here.
        image_name: name without owner and tag.
        image_tag: tag.
        status: an `ImageBuildStatus`, or a plain `str` that is not known here.
        full_image_path: reference with the owner.
        error_message: why the build failed.
        size_bytes: size of the content.
        visibility: an `ImageVisibility`, or a plain `str` that is not known here.
        created_at: when the row was made.
        started_at: when its build began.
        completed_at: when its build ended.
        pushed_at: when the content was stored.
        team_id: owning team.
        owner_type: an `ImageOwnerType`, or a plain `str` that is not known here.
        display_ref: reference to create a sandbox with.
    """

    id: str
    artifact_type: OpenEnum[ImageArtifactType] = Field(alias="artifactType")
    image_name: str = Field(alias="imageName")
    image_tag: str = Field(alias="imageTag")
    status: OpenEnum[ImageBuildStatus]
    full_image_path: str | None = Field(default=None, alias="fullImagePath")
    error_message: str | None = Field(default=None, alias="errorMessage")
    size_bytes: int | None = Field(default=None, alias="sizeBytes")
    visibility: OpenEnum[ImageVisibility] = ImageVisibility.PRIVATE
    created_at: UtcDatetime = Field(alias="createdAt")
    started_at: UtcDatetime | None = Field(default=None, alias="startedAt")
    completed_at: UtcDatetime | None = Field(default=None, alias="completedAt")
    pushed_at: UtcDatetime | None = Field(default=None, alias="pushedAt")
    team_id: str | None = Field(default=None, alias="teamId")
    owner_type: OpenEnum[ImageOwnerType] = Field(default=ImageOwnerType.PERSONAL, alias="ownerType")
    display_ref: str | None = Field(default=None, alias="displayRef")


class ImageListResponse(ResponseModel):
    """One page of images.

    Attributes:
        data: the rows; one image may have several, so there may be more than `limit`.
        total_count: images that match, on all pages; rows are not counted.
        offset: images before this page.
        limit: the most images of a page.
        status: the platform's word on the answer.
    """

    data: list[ImageListItem]
    total_count: int | None = Field(
        default=None, validation_alias=AliasChoices("totalCount", "total_count")
    )
    offset: int
    limit: int
    status: str | None = None
