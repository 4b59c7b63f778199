"""The store behind the presigned addresses of samples."""

from __future__ import annotations

from aiohttp import web

from prime_local.calls import Reply
from prime_local.core import PlatformCore
from prime_local.errors import PlatformError
from prime_local.presigned import read_put

PREFIX = "/sample-store/"


async def serve(core: PlatformCore, request: web.Request) -> Reply:
    """Serve ``PUT /sample-store/<key>?signature=<signature>``.

    Raises:
        PlatformError: 403, 405 or 413.
    """
    if request.method != "PUT":
        raise PlatformError(405, "Method Not Allowed", {"Allow": "PUT"})
    key = request.path[len(PREFIX) :]
    signature, data = await read_put(request)
    core.recording.sample_files.put(key, signature, request.content_type, data)
    await core.saved()
    return Reply(b"", content_type="text/plain")
