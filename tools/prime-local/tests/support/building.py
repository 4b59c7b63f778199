"""Building images over plain HTTP."""

from __future__ import annotations

import asyncio
import io
import tarfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import RawClient

IMAGES = "/api/v1/images"
BUILD = "/api/v1/images/build"
OCTETS = {"Content-Type": "application/octet-stream"}

Files = dict[str, "str | bytes | tarfile.TarInfo"]


def packed(files: Files) -> bytes:
    """A gzip tar; what has no content of its own is a member as it is, such as a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
                continue
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def link(name: str, target: str) -> tarfile.TarInfo:
    """A symbolic link for an archive."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


async def begin(
    client: RawClient, name: str = "app", tag: str = "v1", **fields: Any
) -> dict[str, Any]:
    """Ask for a build; its context is not uploaded yet."""
    body = {"image_name": name, "image_tag": tag, "platform": "linux/amd64", **fields}
    answer = await client.call("POST", BUILD, body)
    assert answer.status == 201, answer.body
    begun: dict[str, Any] = answer.body
    return begun


async def put(
    client: RawClient, url: str, data: bytes, headers: dict[str, str] | None = None
) -> int:
    """Upload a context; returns the status."""
    async with client.session.put(url, data=data, headers=headers or OCTETS) as response:
        await response.read()
        return response.status


async def start(client: RawClient, begun: dict[str, Any]) -> Any:
    """Start a build; returns the answer."""
    path = f"{BUILD}/{begun['build_id']}/start"
    return await client.call("POST", path, {"context_uploaded": True})


async def started(
    client: RawClient,
    dockerfile: str,
    files: Files | None = None,
    name: str = "app",
    **fields: Any,
) -> str:
    """Carry a build up to its start; returns its id."""
    begun = await begin(client, name, **fields)
    data = packed({"Dockerfile": dockerfile, **(files or {})})
    assert await put(client, begun["upload_url"], data) == 200
    answer = await start(client, begun)
    assert answer.status == 200, answer.body
    build_id: str = begun["build_id"]
    return build_id


async def ended(client: RawClient, build_id: str) -> dict[str, Any]:
    """Wait for the end of a build."""
    deadline = time.monotonic() + 30
    while True:
        answer = await client.call("GET", f"{BUILD}/{build_id}")
        assert answer.status == 200, answer.body
        build: dict[str, Any] = answer.body
        if build["status"] in ("COMPLETED", "FAILED", "CANCELLED"):
            return build
        assert time.monotonic() < deadline, build
        await asyncio.sleep(0.02)


async def finished(
    client: RawClient,
    dockerfile: str,
    files: Files | None = None,
    name: str = "app",
    **fields: Any,
) -> dict[str, Any]:
    """Carry a build through, however it ends."""
    return await ended(client, await started(client, dockerfile, files, name, **fields))
