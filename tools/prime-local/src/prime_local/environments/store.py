"""The store behind presigned addresses, which is no part of the contract."""

from __future__ import annotations

import hmac

from aiohttp import web

from prime_local.calls import Reply
from prime_local.core import PlatformCore
from prime_local.errors import PlatformError
from prime_local.presigned import read_put

PREFIX = "/hub-store/"


async def serve(core: PlatformCore, request: web.Request) -> Reply:
    """Serve ``/hub-store/<id>[/<file name>]``: a PUT by its signature, a GET as the hub allows.

    Raises:
        PlatformError: 401, 403, 404, 405 or 413.
    """
    artifact_id = request.path[len(PREFIX) :].partition("/")[0]
    files = core.recording.environments.files
    if request.method == "PUT":
        signature, data = await read_put(request)
        files.put(artifact_id, signature, data)
        await core.saved()
        return Reply(b"", content_type="text/plain")
    if request.method != "GET":
        raise PlatformError(405, "Method Not Allowed", {"Allow": "GET, PUT"})
    artifact = files.find(artifact_id)
    environment = core.recording.environments.by_id(artifact.environment_id)
    key = request.headers.get("Authorization", "").removeprefix("Bearer ")
    allowed = hmac.compare_digest(key.encode(), core.api_key.encode())
    if environment.visibility != "PUBLIC" and not allowed:
        raise PlatformError(401, "The environment is private")
    return Reply(files.content(artifact_id), content_type="application/octet-stream")
