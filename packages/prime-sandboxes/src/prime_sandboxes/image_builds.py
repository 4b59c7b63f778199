"""Carrying builds of images through: starting them once, and waiting for their end."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import IO

from prime_core.calls import Body, Target
from prime_core.encoding import Encoded
from prime_core.errors import APIConnectionError, APIResponseError, ConflictError, ServerError
from prime_core.polling import PollSchedule, PollTimeout
from prime_core.transport import AsyncTransport
from prime_core.uploads import Upload
from prime_sandboxes.errors import ImageBuildError, ImageBuildTimeoutError
from prime_sandboxes.models import (
    FINAL_BUILD_STATUSES,
    BuildImageRequest,
    BuildImageResponse,
    BulkBuildImageResponse,
    ImageBuild,
    ImageBuildStatus,
)
from prime_sandboxes.operations import UPLOAD_BUILD_CONTEXT

__all__ = ["check_answer", "start_surely", "upload_context", "wait_for_build"]

# Without progress for so long, an upload is given up.
UPLOAD_IDLE = 60.0
CHUNK = 256 * 1024
_NOT_STARTED = frozenset({ImageBuildStatus.PENDING, ImageBuildStatus.UPLOADING})


def check_answer(
    request: BuildImageRequest, answer: BuildImageResponse | BulkBuildImageResponse
) -> None:
    """Refuses an answer that leaves the caller without the means to go on.

    Raises:
        APIResponseError: it does.
    """
    if request.source_image is not None:
        return
    if isinstance(answer, BulkBuildImageResponse) or not answer.upload_url or not answer.expires_in:
        raise APIResponseError("The platform began a build without saying where to upload to.")


async def upload_context(
    transport: AsyncTransport, begun: BuildImageResponse, archive: IO[bytes], size: int
) -> None:
    """Puts a packed context where the platform wants it, while the URL lasts.

    Raises:
        ForbiddenError: the URL has expired.
        APIError: any other failure.
    """
    assert begun.upload_url is not None
    loop = asyncio.get_running_loop()

    async def read() -> AsyncIterator[bytes]:
        archive.seek(0)
        while chunk := await loop.run_in_executor(None, archive.read, CHUNK):
            yield chunk

    parts = urllib.parse.urlsplit(begun.upload_url)
    opaque = f"{parts.path.lstrip('/')}?{parts.query}" if parts.query else parts.path.lstrip("/")
    call = transport.prepare_elsewhere(
        UPLOAD_BUILD_CONTEXT,
        _ignore_answer,
        Target.of(f"{parts.scheme}://{parts.netloc}", {"User-Agent": transport.user_agent}),
        path={"presigned_upload": Encoded(opaque)},
        headers={"Content-Type": "application/octet-stream"},
        body=Upload(read, size=size, rewindable=True),
        timeout=begun.expires_in,
        idle=UPLOAD_IDLE,
    )
    await transport.perform(call)


async def _ignore_answer(status: int, body: Body) -> None:
    """Reads an answer to its end; stores say nothing of use."""
    async for _ in body.iter_any():
        pass


async def start_surely(
    start: Callable[[], Awaitable[object]], read: Callable[[], Awaitable[ImageBuild]]
) -> None:
    """Starts a build whose context is uploaded, also when an answer gets lost.

    A build starts once: the platform refuses a second start of it.
    """
    try:
        await start()
    except (APIConnectionError, APIResponseError, ServerError):
        if (await read()).status in _NOT_STARTED:
            with contextlib.suppress(ConflictError):  # the first one has arrived after all
                await start()


async def wait_for_build(
    schedule: PollSchedule[str, ImageBuild], build_id: str, image: str | None, timeout: float
) -> ImageBuild:
    """Waits for the end of a build.

    Raises:
        ImageBuildError: it failed or was cancelled.
        ImageBuildTimeoutError: it did not end in time.
    """
    seen: list[ImageBuild] = []

    def is_over(build: ImageBuild) -> bool:
        seen[:] = [build]
        return build.status in FINAL_BUILD_STATUSES

    try:
        build = await schedule.wait(build_id, is_over, asyncio.get_running_loop().time() + timeout)
    except PollTimeout as late:
        status = str(seen[0].status) if seen else None
        what = f"The build did not end within {timeout:g} s; it goes on ({status})"
        raise ImageBuildTimeoutError(build_id, image, status, message=what) from late.last_error
    if build.status != ImageBuildStatus.COMPLETED:
        name = image or (f"{build.image_name}:{build.image_tag}" if build.image_name else None)
        raise ImageBuildError(build_id, name, str(build.status), build.error_message)
    return build
