"""Routes of the gateway for files."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from aiohttp import BodyPartReader, web

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.files.access import FileFault, OpenFile, open_file, write_file
from prime_local.gateway.access import Unreachable, open_gateway
from prime_local.sandboxes.commands import CommandFault
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.record import wire_date

A = TypeVar("A", bound=Reply | web.StreamResponse)

READ_LIMIT = 10 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_STATUS_OF_ERRNO = {
    errno.ENOENT: 404,
    errno.ENOTDIR: 404,
    errno.EOVERFLOW: 413,
    errno.EACCES: 403,
    errno.EPERM: 403,
    errno.EROFS: 403,
    errno.EXDEV: 403,
    errno.EFBIG: 507,
    errno.ENOSPC: 507,
    errno.EDQUOT: 507,
    errno.EIO: 503,
    errno.ENOMEM: 503,
    errno.EAGAIN: 503,
}


async def upload_file(call: Call) -> Reply:
    async def answer(life: SandboxLife, path: str) -> Reply:
        size = await write_file(life, path, _uploaded(call.request))
        now = wire_date(call.core.clock.date())
        return Reply({"success": True, "path": path, "size": size, "timestamp": now})

    # A missing folder is made, so what is "not a directory" here is in the way.
    return await _about_file(call, answer, {errno.ENOTDIR: 400, errno.EEXIST: 400})


async def download_file(call: Call) -> Reply | web.StreamResponse:
    async def answer(life: SandboxLife, path: str) -> Reply | web.StreamResponse:
        if call.fault is None:
            return await _stream(call.request, open_file(life, path))
        # A rule that spoils the answer counts its bytes.
        async with open_file(life, path) as file:
            content = await _whole(file)
        return Reply(content, content_type="application/octet-stream")

    return await _about_file(call, answer)


async def read_file(call: Call) -> Reply:
    windowed = call.assumptions.read_window == "honoured"
    offset, length = call.parameters.get("offset", 0), call.parameters.get("length", -1)
    if not windowed:
        offset, length = 0, -1

    async def answer(life: SandboxLife, path: str) -> Reply:
        async with open_file(life, path, offset=offset, length=length, limit=READ_LIMIT) as file:
            data = await _whole(file)
        if call.assumptions.binary_file == "refused":
            _check_text(data)
        body: JsonObject = {"content": data.decode("utf-8", "replace"), "size": len(data)}
        if windowed:
            truncated = file.size < file.total
            body |= {"total_size": file.total, "offset": file.start, "truncated": truncated}
        return Reply(body)

    return await _about_file(call, answer)


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler for handler in (upload_file, download_file, read_file)
}


async def _about_file(
    call: Call,
    answer: Callable[[SandboxLife, str], Awaitable[A]],
    statuses: Mapping[int, int] = MappingProxyType({}),
) -> A | Reply:
    """Answer a request about the file that it names.

    Args:
        call: the request.
        answer: makes the answer of a success.
        statuses: by errno, where they differ from those of other routes.
    """
    try:
        life = open_gateway(call)
    except CommandFault as fault:
        return _gateway_failure(call, fault)
    path: str = call.parameters["path"]
    try:
        if not path or "\0" in path:
            raise FileFault(errno.EINVAL, "the path is empty or holds NUL")
        return await answer(life, path)
    except CommandFault as fault:
        return _gateway_failure(call, fault)
    except FileFault as fault:
        if not life.record.live:
            form = call.assumptions.ended_gateway
            return _gateway_failure(call, Unreachable(form, str(fault), ended=True))
        status = statuses.get(fault.number) or _STATUS_OF_ERRNO.get(fault.number, 400)
        return _error(call, status, "gateway_error", str(fault))


async def _whole(file: OpenFile) -> bytes:
    return b"".join([piece async for piece in file.pieces()])


def _check_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise FileFault(errno.EINVAL, "the file is no UTF-8 text") from None


async def _uploaded(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the content of the form field `file`, as it comes.

    Raises:
        FileFault: the body is no such form, or broke off.
    """
    if request.content_type != "multipart/form-data":
        raise FileFault(errno.EINVAL, "the body must be multipart/form-data")
    try:
        reader = await request.multipart()
        part = await reader.next()
        if not isinstance(part, BodyPartReader) or part.name != "file" or part.filename is None:
            raise FileFault(errno.EINVAL, "the form must have a field `file` with a filename")
        while piece := await part.read_chunk(_PIECE_BYTES):
            yield piece
        if await reader.next() is not None:
            raise FileFault(errno.EINVAL, "the form must have one field")
    except (ValueError, ConnectionError, web.RequestPayloadError) as error:
        raise FileFault(errno.EINVAL, f"the body is no whole form: {error}") from error


async def _stream(
    request: web.Request, opening: contextlib.AbstractAsyncContextManager[OpenFile]
) -> web.StreamResponse:
    """Send a file while it is read; when it has arrived, the sandbox is in use no more."""
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    last = b""
    # A caller who leaves ends it too.
    with contextlib.suppress(ConnectionError):
        async with opening as file:
            response.content_length = file.size
            await response.prepare(request)
            try:
                async for piece in file.pieces():
                    await response.write(last)
                    last = piece
            except FileFault:
                # The answer has begun, so that only its end can tell.
                if request.transport is not None:
                    request.transport.close()
                return response
        await response.write(last)
        await response.write_eof()
    return response


def _gateway_failure(call: Call, fault: CommandFault) -> Reply:
    if isinstance(fault, Unreachable) and fault.by_router:
        return _error(call, 502, "sandbox_not_found", fault.message)
    if fault.code == "not_found" or (isinstance(fault, Unreachable) and fault.ended):
        return _error(call, 410, "sandbox_terminated", fault.message)
    status = 409 if isinstance(fault, Unreachable) else 503
    if fault.code == "unauthenticated":
        status = 401
    return _error(call, status, "gateway_error", fault.message)


def _error(call: Call, status: int, code: str, message: str) -> Reply:
    body = {"error": code, "message": message, "code": status}
    known = call.operation.spec["responses"]
    if str(status) in known or status >= 500:
        return Reply(body, status)
    # In bytes: the contract does not list what an impossible path is answered with.
    return Reply(json.dumps(body).encode(), status)
