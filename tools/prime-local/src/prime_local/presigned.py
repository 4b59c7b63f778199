"""Requests to presigned addresses, which no part of the contract describes."""

from __future__ import annotations

from urllib.parse import parse_qsl

from aiohttp import web

from prime_local.errors import PlatformError

MOST_BYTES = 256 * 1024 * 1024
# What such an address does not allow for.
_FOREIGN_HEADERS = ("Authorization", "X-Prime-Team-ID", "Cookie")


async def read_put(request: web.Request) -> tuple[str, bytes]:
    """Return the signature and the file of a PUT.

    Raises:
        PlatformError: 403 or 413.
    """
    if any(name in request.headers for name in _FOREIGN_HEADERS):
        raise PlatformError(403, "The request holds headers that are not signed")
    data = await request.read()
    if len(data) > MOST_BYTES:
        raise PlatformError(413, f"More than {MOST_BYTES} bytes")
    return dict(parse_qsl(request.query_string)).get("signature", ""), data
