"""Finding, changing and deleting images."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeAlias

from prime_core.models import encode_request
from prime_core.pagination import Page, iterate_pages
from prime_sandboxes._async.image_resource import AsyncImageResource
from prime_sandboxes.errors import ImageUpdateError
from prime_sandboxes.image_references import split_reference
from prime_sandboxes.models import (
    ImageListItem,
    ImageListResponse,
    ImageUpdateItem,
    ImageUpdatePatch,
    ImageUpdateResult,
    ImageUpdateSource,
    ImageVisibility,
    PersonalImageOwner,
    TeamImageOwner,
    UpdateImagesRequest,
    UpdateImagesResponse,
)
from prime_sandboxes.operations import DELETE_IMAGE, LIST_IMAGES, UPDATE_IMAGES

__all__ = ["AsyncImageCatalog"]

JSONObject: TypeAlias = dict[str, Any]

MOST_PER_PAGE = 250


class AsyncImageCatalog(AsyncImageResource):
    """The part of the client that finds, changes and deletes images."""

    async def list(
        self,
        *,
        team_id: str | None = None,
        search: str | None = None,
        platform: bool = False,
        offset: int = 0,
        limit: int = 100,
    ) -> ImageListResponse:
        """Reads a page of the images; `iter` reads all of them.

        Offset and limit count images; one may have several rows, such as a build under way.

        Follows the documented page "api-reference/images/list-user-images".

        Args:
            team_id: the team, by default the configured one; "" is the personal account.
            search: part of the name, the tag or ``name:tag``, in any case.
            platform: the platform's images instead; excludes a team.
            offset: images to skip, at least 0.
            limit: the most images, 1 to 250.
        """
        if offset < 0 or not 1 <= limit <= MOST_PER_PAGE:
            raise ValueError(f"offset is at least 0, limit 1 to {MOST_PER_PAGE}")
        if platform and team_id:
            raise ValueError("platform excludes team_id")
        team = "" if platform else self._team(team_id)
        return await self._transport.request(
            LIST_IMAGES,
            ImageListResponse,
            query={
                "teamId": team or None,
                "ownerScope": "platform" if platform else None,
                "search": search,
                "offset": offset,
                "limit": limit,
            },
            team=team,
        )

    async def iter(
        self,
        *,
        team_id: str | None = None,
        search: str | None = None,
        platform: bool = False,
    ) -> AsyncIterator[ImageListItem]:
        """Reads the rows of all images, page after page; the arguments are those of `list`."""

        async def fetch(number: int) -> Page[ImageListItem]:
            offset = (number - 1) * MOST_PER_PAGE
            page = await self.list(
                team_id=team_id,
                search=search,
                platform=platform,
                offset=offset,
                limit=MOST_PER_PAGE,
            )
            total = page.total_count
            if total is None:
                return Page(page.data, 0, len(page.data) >= MOST_PER_PAGE)
            return Page(page.data, total, offset + MOST_PER_PAGE < total)

        async for image in iterate_pages(fetch, MOST_PER_PAGE, lambda image: image.id):
            yield image

    async def update_images(self, request: UpdateImagesRequest) -> UpdateImagesResponse:
        """Renames, retags, moves, publishes or unpublishes 1 to 100 images.

        Each change is made or refused on its own; nothing is overwritten. It is sent once.

        Follows the documented page "api-reference/images/update-images".

        Args:
            request: the changes; ``dry_run`` checks them only.

        Returns:
            What became of each; a refusal is a result, not an error.

        Raises:
            APIError: the request as a whole failed.
        """
        if not isinstance(request, UpdateImagesRequest):
            raise TypeError(f"pass an UpdateImagesRequest, not {type(request).__name__}")
        return await self._transport.request(
            UPDATE_IMAGES, UpdateImagesResponse, body=encode_request(request)
        )

    async def publish(self, reference: str, *, team_id: str | None = None) -> ImageUpdateResult:
        """Lets every user of the platform use an image.

        Follows the documented page "sandboxes/images", "Publish or Unpublish an Image".

        Args:
            reference: such as ``prime/acme/myapp:v1``, or ``myapp:v1``.
            team_id: whose ``myapp:v1`` is meant, by default the configured team's; "" is the
                personal account's.

        Raises:
            ImageUpdateError: it was refused; ``code`` says why.
            APIError: any other failure.
        """
        return await self._set_visibility(reference, team_id, ImageVisibility.PUBLIC)

    async def unpublish(self, reference: str, *, team_id: str | None = None) -> ImageUpdateResult:
        """Takes an image back to its owner; the arguments are those of `publish`."""
        return await self._set_visibility(reference, team_id, ImageVisibility.PRIVATE)

    async def delete(self, reference: str, *, team_id: str | None = None) -> JSONObject:
        """Deletes an image.

        Follows the documented page "api-reference/images/delete-user-image".

        Args:
            reference: such as ``prime/acme/myapp:v1``, or ``myapp:v1``.
            team_id: whose ``myapp:v1`` is meant, by default the configured team's; "" is the
                personal account's.

        Returns:
            The platform's answer; empty when an earlier attempt of this call had deleted it
            without being answered.

        Raises:
            NotFoundError: there is no such image that the caller can see.
            ForbiddenError: a team's image is for its creator and the team's admins to delete.
        """
        name, tag = split_reference(reference)
        team = "" if "/" in name else self._team(team_id)
        return await self._transport.request(
            DELETE_IMAGE,
            path={"image_name": name, "image_tag": tag},
            query={"teamId": team or None},
            team=team,
        )

    async def _set_visibility(
        self, reference: str, team_id: str | None, visibility: ImageVisibility
    ) -> ImageUpdateResult:
        name, tag = split_reference(reference)
        if "/" in name:
            source = ImageUpdateSource(reference=reference)
        else:
            team = self._team(team_id)
            owner = TeamImageOwner(team_id=team) if team else PersonalImageOwner()
            source = ImageUpdateSource(owner=owner, name=name, tag=tag)
        change = ImageUpdateItem(source=source, set=ImageUpdatePatch(visibility=visibility))
        answer = await self.update_images(UpdateImagesRequest(updates=[change]))
        result = answer.results[0]
        if not result.success:
            error = result.error
            code, text = (error.code, error.message) if error else ("unknown", "no reason given")
            raise ImageUpdateError(reference, code, text)
        return result
