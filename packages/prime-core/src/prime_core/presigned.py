"""Files at addresses that answers name: put to a presigned one, or read from one.

Such a host sees no team, and the API key only where it is the client's own.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping

from prime_core.calls import Body, Call, Target
from prime_core.encoding import Encoded
from prime_core.errors import APIResponseError
from prime_core.local_files import PartialFile
from prime_core.operations import Operation
from prime_core.transport import AsyncTransport
from prime_core.uploads import Upload

__all__ = ["get_file", "put_file"]

# Without progress for so long, a transfer is given up.
IDLE = 60.0

_PUT = Operation(id="put_file", method="PUT", path="/{rest}", safety="safe")
_GET = Operation(id="get_file", method="GET", path="/{rest}", safety="safe", keyless=True)


async def put_file(
    transport: AsyncTransport,
    url: str,
    upload: Upload,
    *,
    content_type: str = "application/octet-stream",
) -> None:
    """Puts a file to a presigned address, without key, team or cookies, and without redirects.

    Args:
        transport: the client's.
        url: the address.
        upload: the file.
        content_type: its type, which the address may be signed for.

    Raises:
        ForbiddenError: the address has expired.
        APIError: any other failure.
    """
    target, path = _split(transport, url, {})
    call = transport.prepare_elsewhere(
        _PUT,
        _ignore_answer,
        target,
        path=path,
        headers={"Content-Type": content_type},
        body=upload,
        timeout=None,
        idle=IDLE,
    )
    await transport.perform(call)


async def get_file(transport: AsyncTransport, url: str, place: PartialFile) -> None:
    """Reads a file into a local one; one that breaks off is begun anew.

    Raises:
        NotFoundError: there is none.
        APIError: any other failure.
    """
    own = _origin(transport.config.base_url) == _origin(url) and transport.config.api_key
    headers = {"Authorization": f"Bearer {transport.config.api_key}"} if own else {}
    target, path = _split(transport, url, headers)

    async def receive(status: int, body: Body) -> int:
        return await place.receive(body.iter_any(), call.answer_size)

    call: Call[int] = transport.prepare_elsewhere(
        _GET,
        receive,
        target,
        path=path,
        # What is stored is wanted, not what it decompresses to.
        headers={"Accept-Encoding": "identity"},
        timeout=None,
        idle=IDLE,
    )
    await transport.perform(call)


def _split(
    transport: AsyncTransport, url: str, headers: Mapping[str, str]
) -> tuple[Target, dict[str, str]]:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise APIResponseError("The platform named no address for a file.")
    rest = parts.path.lstrip("/") + (f"?{parts.query}" if parts.query else "")
    named = {"User-Agent": transport.user_agent, **headers}
    return Target.of(f"{parts.scheme}://{parts.netloc}", named), {"rest": Encoded(rest)}


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


async def _ignore_answer(status: int, body: Body) -> None:
    """Reads an answer to its end; stores say nothing of use."""
    async for _ in body.iter_any():
        pass
