"""Building images. Follows the page "sandboxes/images", "Push an Image"."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, RootModel, model_validator

from prime_core.models import OpenEnum, RequestModel, ResponseModel, UtcDatetime
from prime_sandboxes.image_references import (
    check_image_name,
    check_image_tag,
    is_docker_hub_reference,
)
from prime_sandboxes.models.images import (
    ImageArtifactType,
    ImageBuildStatus,
    ImageVisibility,
)


class BuildImageRequest(RequestModel):
    """What to build: an uploaded Dockerfile context, or images of public registries.

    Sources that are all on Docker Hub become public images of the platform: for them
    `visibility` and `owner_scope` are set so, and a destination, a team and `PRIVATE` are refused.

    Attributes:
        image_name: destination without owner and tag; required for a Dockerfile, derived from a
            source.
        image_tag: destination's tag; required for a Dockerfile, derived from a source.
        dockerfile_path: path of the Dockerfile in the uploaded context.
        source_image: a public image, or several joined by commas; none of them is uploaded.
        platform: `linux/amd64` or `linux/arm64`.
        team_id: owning team; `None` is the personal account, whatever the client's team.
        visibility: `None` keeps that of an existing tag; new tags are private.
        owner_scope: `platform` for an image of the platform; for its admins.

    Raises:
        pydantic.ValidationError: a `ValueError`; the fields do not go together.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"dockerfile_path", "platform"})
    omits_null: ClassVar[bool] = True

    image_name: str | None = None
    image_tag: str | None = None
    dockerfile_path: str = Field(default="Dockerfile", min_length=1)
    source_image: str | None = Field(default=None, validation_alias="sourceImage")
    platform: Literal["linux/amd64", "linux/arm64"] = "linux/amd64"
    team_id: str | None = Field(default=None, min_length=1, validation_alias="teamId")
    visibility: ImageVisibility | None = None
    owner_scope: Literal["platform"] | None = Field(default=None, validation_alias="ownerScope")

    @property
    def sources(self) -> list[str]:
        """The source images, one by one."""
        return [] if self.source_image is None else self.source_image.split(",")

    @model_validator(mode="after")
    def _check_destination(self) -> BuildImageRequest:
        if self.image_name is not None:
            check_image_name(self.image_name, owner=self.owner_scope == "platform")
        if self.image_tag is not None:
            check_image_tag(self.image_tag)
        if self.owner_scope == "platform":
            if self.team_id is not None:
                raise ValueError("owner_scope platform excludes team_id")
            if self.visibility == ImageVisibility.PRIVATE:
                raise ValueError("images of the platform are PUBLIC")
        if self.source_image is None and None in (self.image_name, self.image_tag):
            raise ValueError("a Dockerfile build needs image_name and image_tag")
        return self

    @model_validator(mode="after")
    def _check_sources(self) -> BuildImageRequest:
        if self.source_image is None:
            return self
        self.source_image = ",".join(source.strip() for source in self.sources)
        if any(not source or any(c.isspace() for c in source) for source in self.sources):
            raise ValueError("source_image is an image reference, or several joined by commas")
        named = self.image_name is not None or self.image_tag is not None
        if named and len(self.sources) > 1:
            raise ValueError("image_name and image_tag go with one source_image only")
        if all(map(is_docker_hub_reference, self.sources)):
            if named:
                raise ValueError("a Docker Hub source_image keeps its name: give no image_name")
            if self.team_id is not None:
                raise ValueError("a Docker Hub source_image excludes team_id")
            if self.visibility == ImageVisibility.PRIVATE:
                raise ValueError("a Docker Hub source_image becomes PUBLIC")
            self.visibility, self.owner_scope = ImageVisibility.PUBLIC, "platform"
        return self


class BuildImageResponse(ResponseModel):
    """A build that was begun.

    Attributes:
        build_id: the build.
        build_ids: all builds of the request.
        upload_url: where to put the context, without an API key; `None` for a source build. Left
            out of `repr`: whoever has it can upload.
        expires_in: seconds that the URL lasts.
        full_image_path: reference of the image once it is built.
        visibility: an `ImageVisibility`, or a plain `str` that is not known here.
    """

    build_id: str
    build_ids: list[str] = Field(default_factory=list, alias="buildIds")
    upload_url: str | None = Field(default=None, repr=False)
    expires_in: int | None = None
    full_image_path: str = Field(alias="fullImagePath")
    visibility: OpenEnum[ImageVisibility] | None = None


class SourceImageBuildResult(ResponseModel):
    """What became of one of several sources.

    Attributes:
        source_image: the source.
        build: its build, or `None` when it was refused.
        error: why it was refused.
        retryable: whether the same request may succeed later.
    """

    source_image: str = Field(alias="sourceImage")
    build: BuildImageResponse | None = None
    error: str | None = None
    retryable: bool = False


class BulkBuildImageResponse(ResponseModel):
    """The builds of several sources.

    Attributes:
        results: what became of each, in the order of the request.
    """

    results: list[SourceImageBuildResult]


class InitiatedBuild(RootModel[BulkBuildImageResponse | BuildImageResponse]):
    """Either answer to the request for a build."""


class StartBuildRequest(RequestModel):
    """Tells that the context is uploaded."""

    always_sent: ClassVar[frozenset[str]] = frozenset({"context_uploaded"})

    context_uploaded: bool = True


class ImageBuildArtifact(ResponseModel):
    """One product of a build.

    Attributes:
        id: the product.
        artifact_type: an `ImageArtifactType`, or a plain `str` that is not known here.
        status: an `ImageBuildStatus`, or a plain `str` that is not known here.
        full_image_path: reference of the image.
        error_message: why it was not made.
        created_at: when it was asked for.
        started_at: when its making began.
        completed_at: when it ended.
    """

    id: str
    artifact_type: OpenEnum[ImageArtifactType] | None = Field(default=None, alias="artifactType")
    status: OpenEnum[ImageBuildStatus]
    full_image_path: str | None = Field(default=None, alias="fullImagePath")
    error_message: str | None = Field(default=None, alias="errorMessage")
    created_at: UtcDatetime = Field(alias="createdAt")
    started_at: UtcDatetime | None = Field(default=None, alias="startedAt")
    completed_at: UtcDatetime | None = Field(default=None, alias="completedAt")


class ImageBuild(ResponseModel):
    """A build.

    Attributes:
        id: the build.
        image_name: name without owner and tag.
        image_tag: tag.
        status: an `ImageBuildStatus`, or a plain `str` that is not known here.
        error_message: why it failed; the end of its log, as far as the platform tells.
        full_image_path: reference of the image, where it is known.
        created_at: when it was asked for.
        started_at: when it began.
        completed_at: when it ended.
        artifacts: its products.
    """

    id: str | None = None
    image_name: str | None = Field(default=None, alias="imageName")
    image_tag: str | None = Field(default=None, alias="imageTag")
    status: OpenEnum[ImageBuildStatus]
    error_message: str | None = Field(
        default=None, validation_alias=AliasChoices("errorMessage", "error_message")
    )
    full_image_path: str | None = Field(default=None, alias="fullImagePath")
    created_at: UtcDatetime | None = Field(default=None, alias="createdAt")
    started_at: UtcDatetime | None = Field(default=None, alias="startedAt")
    completed_at: UtcDatetime | None = Field(default=None, alias="completedAt")
    artifacts: list[ImageBuildArtifact] = Field(default_factory=list)


class ImageBuildListResponse(ResponseModel):
    """One page of builds.

    Attributes:
        data: the builds.
        total_count: builds on all pages.
        offset: builds before this page.
        limit: the most builds of a page.
        status: the platform's word on the answer.
    """

    data: list[ImageBuild]
    total_count: int | None = Field(
        default=None, validation_alias=AliasChoices("totalCount", "total_count")
    )
    offset: int | None = None
    limit: int | None = None
    status: str | None = None
