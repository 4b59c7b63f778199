"""Building images."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from prime_core._async.api_client import AsyncAPIClient
from prime_core.concurrency import run_all
from prime_core.errors import NotFoundError
from prime_core.models import encode_request
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_sandboxes import image_builds
from prime_sandboxes._async.image_resource import AsyncImageResource
from prime_sandboxes.arguments import check_seconds
from prime_sandboxes.build_context import DOCKERFILE_NAME, packed_context
from prime_sandboxes.image_references import split_reference
from prime_sandboxes.models import (
    BuildImageRequest,
    BuildImageResponse,
    BulkBuildImageResponse,
    ImageBuild,
    ImageBuildListResponse,
    ImageVisibility,
    InitiatedBuild,
    StartBuildRequest,
)
from prime_sandboxes.operations import (
    GET_IMAGE_BUILD,
    INITIATE_IMAGE_BUILD,
    LIST_IMAGE_BUILDS,
    START_IMAGE_BUILD,
)
from prime_sandboxes.waiting import is_transient

__all__ = ["AsyncImageBuilds"]

JSONObject: TypeAlias = dict[str, Any]
ImagePlatform: TypeAlias = Literal["linux/amd64", "linux/arm64"]

# Builds are asked for one by one.
ASKED_AT_ONCE = 20


class AsyncImageBuilds(AsyncImageResource):
    """The part of the client that builds images.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules = PerLoop(
            lambda: PollSchedule(self._read_builds, transient=is_transient, batch=ASKED_AT_ONCE)
        )

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)

    async def initiate_build(
        self, request: BuildImageRequest
    ) -> BuildImageResponse | BulkBuildImageResponse:
        """Asks for a build; `build` does all that a Dockerfile takes.

        It is sent once: after a failure that leaves the outcome open, `list_builds` tells.

        Follows the documented page "api-reference/images/initiate-image-build".

        Args:
            request: what to build. Without a ``team_id`` the image is personal.

        Returns:
            For a Dockerfile where to upload the context, within ``expires_in`` seconds, before
            `start_build`. For one source its build, for several the outcome of each.

        Raises:
            QuotaExceededError: an image limit or a storage limit is reached.
            APIError: any other failure.
        """
        if not isinstance(request, BuildImageRequest):
            raise TypeError(f"pass a BuildImageRequest, not {type(request).__name__}")
        initiated = await self._transport.request(
            INITIATE_IMAGE_BUILD,
            InitiatedBuild,
            body=encode_request(request),
            team=request.team_id or "",
        )
        image_builds.check_answer(request, initiated.root)
        return initiated.root

    async def transfer_image(
        self,
        source_image: str,
        *,
        image_name: str | None = None,
        image_tag: str | None = None,
        team_id: str | None = None,
        visibility: ImageVisibility | None = None,
        owner_scope: Literal["platform"] | None = None,
        platform: ImagePlatform = "linux/amd64",
    ) -> BuildImageResponse | BulkBuildImageResponse:
        """Copies images of public registries; wait for each with `wait_for_build`.

        Follows the documented page "sandboxes/images", "Push an Image".

        Args:
            source_image: an image, or several joined by commas.
            image_name: name of the copy; by default the source's. Not for Docker Hub's images,
                which become public images of the platform.
            image_tag: tag of the copy; by default the source's.
            team_id: owning team; by default the personal account.
            visibility: of the copy.
            owner_scope: ``platform`` for an image of the platform; for its admins.
            platform: ``linux/amd64`` or ``linux/arm64``.

        Returns:
            For one source its build, for several the outcome of each.

        Raises:
            ValueError: the arguments do not go together; nothing was sent.
            QuotaExceededError: an image limit or a storage limit is reached.
            APIError: any other failure.
        """
        request = BuildImageRequest(
            source_image=source_image,
            image_name=image_name,
            image_tag=image_tag,
            team_id=team_id,
            visibility=visibility,
            owner_scope=owner_scope,
            platform=platform,
        )
        return await self.initiate_build(request)

    async def start_build(self, build_id: str) -> JSONObject:
        """Starts a build whose context has been uploaded.

        Args:
            build_id: the build.

        Returns:
            The build as `get_build_status` reads it.

        Raises:
            ConflictError: it has been started before, or its context is missing.
            NotFoundError: there is no such build.
        """
        return await self._transport.request(
            START_IMAGE_BUILD,
            path={"build_id": build_id},
            body=encode_request(StartBuildRequest()),
        )

    async def get_build_status(self, build_id: str) -> JSONObject:
        """Reads a build.

        Args:
            build_id: the build.

        Returns:
            The platform's object: ``status`` is an `ImageBuildStatus`, ``errorMessage`` says why
            it failed.

        Raises:
            NotFoundError: there is no such build.
        """
        return await self._transport.request(GET_IMAGE_BUILD, path={"build_id": build_id})

    async def list_builds(self, *, offset: int = 0, limit: int = 100) -> ImageBuildListResponse:
        """Reads a page of the caller's builds.

        Follows the documented page "api-reference/images/list-image-builds".

        Args:
            offset: builds to skip, at least 0.
            limit: the most builds, at least 1.
        """
        if offset < 0 or limit < 1:
            raise ValueError("offset is at least 0, limit at least 1")
        return await self._transport.request(
            LIST_IMAGE_BUILDS, ImageBuildListResponse, query={"offset": offset, "limit": limit}
        )

    async def wait_for_build(self, build_id: str, timeout: float = 1800.0) -> ImageBuild:
        """Waits until a build is completed.

        Args:
            build_id: the build, also one of a transfer.
            timeout: seconds, above 0.

        Raises:
            ImageBuildError: it failed; the message holds the end of its log.
            ImageBuildTimeoutError: it did not end in time; it goes on.
            NotFoundError: there is no such build.
        """
        check_seconds("timeout", timeout)
        return await image_builds.wait_for_build(self._schedules.get(), build_id, None, timeout)

    async def build(
        self,
        image: str,
        context: str | os.PathLike[str] = ".",
        *,
        dockerfile: str | os.PathLike[str] | None = None,
        team_id: str | None = None,
        visibility: ImageVisibility | None = None,
        platform: ImagePlatform = "linux/amd64",
        timeout: float = 1800.0,
    ) -> ImageBuild:
        """Builds an image of a folder with a Dockerfile, and waits for it.

        The folder is packed without what its ``.dockerignore`` names, or that of the Dockerfile,
        ``<dockerfile>.dockerignore``, if there is one. Links are packed as links; sockets, pipes
        and devices are left out. Times are not kept, so that the same files make the same
        archive. A cancellation before the start leaves nothing behind; a build that has been
        started goes on without its caller.

        Follows the documented page "sandboxes/images", "Push an Image".

        Args:
            image: name and tag, such as ``myapp:v1.0.0``; the tag is ``latest`` by default.
            context: the folder.
            dockerfile: by default ``Dockerfile`` in the folder; it may lie elsewhere.
            team_id: owning team, by default the configured one; "" is the personal account.
            visibility: by default that of an existing tag; a new one is private.
            platform: ``linux/amd64`` or ``linux/arm64``.
            timeout: seconds for the build, once it has been started.

        Returns:
            The build; its ``full_image_path`` is what to create sandboxes with.

        Raises:
            ImageBuildError: it failed; the message holds the end of its log.
            ImageBuildTimeoutError: it did not end in time; it goes on.
            QuotaExceededError: an image limit or a storage limit is reached.
            FileNotFoundError: there is no such folder or Dockerfile; nothing was sent.
            ValueError: an argument or a ``.dockerignore`` is wrong; nothing was sent.
            APIError: any other failure.
        """
        check_seconds("timeout", timeout)
        name, tag = split_reference(image, default_tag="latest")
        request = BuildImageRequest(
            image_name=name,
            image_tag=tag,
            dockerfile_path=DOCKERFILE_NAME,
            platform=platform,
            team_id=self._team(team_id) or None,
            visibility=visibility,
        )
        folder = Path(context)
        source = Path(dockerfile) if dockerfile is not None else folder / "Dockerfile"
        async with packed_context(folder, source) as (archive, size):
            begun = await self.initiate_build(request)
            assert isinstance(begun, BuildImageResponse)
            await image_builds.upload_context(self._transport, begun, archive, size)
        await image_builds.start_surely(
            lambda: self.start_build(begun.build_id), lambda: self._read_build(begun.build_id)
        )
        built = await image_builds.wait_for_build(
            self._schedules.get(), begun.build_id, begun.full_image_path, timeout
        )
        return built.model_copy(update={"full_image_path": begun.full_image_path})

    async def _read_build(self, build_id: str) -> ImageBuild:
        return await self._transport.request(
            GET_IMAGE_BUILD, ImageBuild, path={"build_id": build_id}
        )

    async def _read_builds(self, build_ids: list[str]) -> Mapping[str, ImageBuild | Exception]:
        async def read(build_id: str) -> tuple[str, ImageBuild | Exception]:
            try:
                return build_id, await self._read_build(build_id)
            except NotFoundError as error:
                return build_id, error

        return dict(await run_all(read(build_id) for build_id in build_ids))
