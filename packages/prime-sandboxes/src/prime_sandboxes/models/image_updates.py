"""Changing images. Follows the page "api-reference/images/update-images"."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, field_validator, model_validator

from prime_core.models import OpenEnum, RequestModel, ResponseModel
from prime_sandboxes.image_references import check_image_name, check_image_tag, split_reference
from prime_sandboxes.models.images import ImageVisibility

MAX_IMAGE_UPDATES = 100
"""The most items of one update."""


class _Owner(RequestModel):
    """Owners come back in answers, so unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class PersonalImageOwner(_Owner):
    """The caller's own account.

    Attributes:
        type: always `personal`.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"type"})

    type: Literal["personal"] = "personal"


class TeamImageOwner(_Owner):
    """A team of the caller's.

    Attributes:
        type: always `team`.
        team_id: the team.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"type"})

    type: Literal["team"] = "team"
    team_id: str = Field(min_length=1, validation_alias="teamId", serialization_alias="teamId")


class PlatformImageOwner(_Owner):
    """The platform; its images are always public, and for its admins to change.

    Attributes:
        type: always `platform`.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"type"})

    type: Literal["platform"] = "platform"


ImageOwner: TypeAlias = Annotated[
    PersonalImageOwner | TeamImageOwner | PlatformImageOwner, Field(discriminator="type")
]
"""Whose an image is."""


class OtherImageOwner(ResponseModel):
    """An owner of a kind that is not known here.

    Attributes:
        type: the kind.
    """

    type: str


AnyImageOwner: TypeAlias = Annotated[
    ImageOwner | OtherImageOwner, Field(union_mode="left_to_right")
]
"""An owner in an answer."""


class ImageUpdateSource(RequestModel):
    """The image to change: either its reference, or its owner, name and tag.

    Attributes:
        owner: whose it is.
        name: name without owner and tag.
        tag: tag.
        reference: such as `prime/acme/myapp:v1`, or `myapp:v1` for a personal image.

    Raises:
        pydantic.ValidationError: a `ValueError`; both forms, or neither.
    """

    omits_null: ClassVar[bool] = True

    owner: ImageOwner | None = None
    name: str | None = None
    tag: str | None = None
    reference: str | None = None

    @model_validator(mode="after")
    def _check_form(self) -> ImageUpdateSource:
        parts = (self.owner, self.name, self.tag)
        if self.reference is not None:
            if any(part is not None for part in parts):
                raise ValueError("give reference alone, or owner with name and tag")
            split_reference(self.reference)
        elif self.owner is None or self.name is None or self.tag is None:
            raise ValueError("give reference, or owner with name and tag")
        else:
            check_image_name(self.name, owner=self.owner.type == "platform")
            check_image_tag(self.tag)
        return self


class ImageUpdatePatch(RequestModel):
    """What to change; at least one thing. A destination that exists is never overwritten.

    Attributes:
        name: new name, without owner and tag.
        tag: new tag.
        owner: new owner: from personal to a team, or from either to the platform.
        visibility: `PUBLIC` publishes, `PRIVATE` unpublishes.

    Raises:
        pydantic.ValidationError: a `ValueError`; nothing to change, or a private platform image.
    """

    omits_null: ClassVar[bool] = True

    name: str | None = None
    tag: str | None = None
    owner: ImageOwner | None = None
    visibility: ImageVisibility | None = None

    @field_validator("tag")
    @classmethod
    def _check_tag(cls, tag: str | None) -> str | None:
        return tag if tag is None else check_image_tag(tag)

    @model_validator(mode="after")
    def _check_changes(self) -> ImageUpdatePatch:
        changes = (self.name, self.tag, self.owner, self.visibility)
        if all(change is None for change in changes):
            raise ValueError("give at least one of name, tag, owner and visibility")
        if self.name is not None:
            # Images of the platform may hold slashes, and the source may be one.
            check_image_name(self.name, owner=self.owner is None or self.owner.type == "platform")
        private = self.visibility == ImageVisibility.PRIVATE
        if private and self.owner is not None and self.owner.type == "platform":
            raise ValueError("images of the platform are PUBLIC")
        return self


class ImageUpdateItem(RequestModel):
    """An image and what to change about it.

    Attributes:
        source: the image.
        set: the changes.
    """

    source: ImageUpdateSource
    set: ImageUpdatePatch


class UpdateImagesRequest(RequestModel):
    """1 to 100 changes, each made or refused on its own.

    Attributes:
        mode: always `explicit`.
        dry_run: checks everything and changes nothing.
        updates: the changes.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"mode", "dry_run"})

    mode: Literal["explicit"] = "explicit"
    dry_run: bool = Field(default=False, validation_alias="dryRun", serialization_alias="dryRun")
    updates: list[ImageUpdateItem] = Field(min_length=1, max_length=MAX_IMAGE_UPDATES)


class ImageMutationError(ResponseModel):
    """Why an image was not changed.

    Attributes:
        code: `destination_exists`, `image_not_found` or another word.
        message: the same in words.
    """

    code: str
    message: str


class ImageCoordinateState(ResponseModel):
    """Where an image stood or stands.

    Attributes:
        owner: whose it is.
        name: name without owner and tag.
        tag: tag.
        visibility: an `ImageVisibility`, or a plain `str` that is not known here.
    """

    owner: AnyImageOwner
    name: str
    tag: str
    visibility: OpenEnum[ImageVisibility]


class UpdatedImageSource(ResponseModel):
    """The source of a change, as the platform repeats it; see `ImageUpdateSource`.

    Attributes:
        owner: whose it is.
        name: name without owner and tag.
        tag: tag.
        reference: the reference that the request gave.
    """

    owner: AnyImageOwner | None = None
    name: str | None = None
    tag: str | None = None
    reference: str | None = None


class ImageUpdateResult(ResponseModel):
    """What became of one change.

    Attributes:
        source: the image, as the request named it.
        success: whether the change was made, or could be made in a dry run.
        before: where the image stood.
        after: where it stands now, or would stand.
        error: why it was not changed.
    """

    source: UpdatedImageSource
    success: bool
    before: ImageCoordinateState | None = None
    after: ImageCoordinateState | None = None
    error: ImageMutationError | None = None


class UpdateImagesResponse(ResponseModel):
    """What became of all changes, in the order of the request.

    Attributes:
        success: whether all succeeded.
        dry_run: whether nothing was written.
        results: one for each change.
    """

    success: bool
    dry_run: bool = Field(default=False, alias="dryRun")
    results: list[ImageUpdateResult] = Field(default_factory=list)
