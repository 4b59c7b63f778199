"""Routes of the gateway for files."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import AsyncIterator

from aiohttp import BodyPartReader, web

from prime_local.calls import Call, Handler, Reply
from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError, invalid
from prime_local.files.access import FileFault, OpenFile, open_file, write_file
from prime_local.gateway.routes import Unreachable, open_gateway
from prime_local.sandboxes.commands import CommandFault
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.record import wire_date

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
    try:
        life, path = _open(call)
        size = await write_file(life, path, _uploaded(call.request))
    except (CommandFault, FileFault) as fault:
        # A missing folder is made, so what is "not a directory" here is in the way.
        return _failure(call, fault, {errno.ENOTDIR: 400, errno.EEXIST: 400})
    now = wire_date(call.core.clock.date())
    return Reply({"success": True, "path": path, "size": size, "timestamp": now})


async def download_file(call: Call) -> Reply | web.StreamResponse:
    try:
        life, path = _open(call)
        async with open_file(life, path) as file:
            if call.fault is not None:
                # A rule that spoils the answer counts its bytes.
                content = b"".join([piece async for piece in file.pieces()])
                return Reply(content, content_type="application/octet-stream")
            return await _stream(call.request, file)
    except (CommandFault, FileFault) as fault:
        return _failure(call, fault)


async def read_file(call: Call) -> Reply:
    windowed = call.assumptions.read_window == "honoured"
    offset, length = call.parameters.get("offset", 0), call.parameters.get("length", -1)
    if not windowed:
        offset, length = 0, -1
    try:
        life, path = _open(call)
        async with open_file(life, path, offset=offset, length=length, limit=READ_LIMIT) as file:
            data = b"".join([piece async for piece in file.pieces()])
        if call.assumptions.binary_file == "refused":
            _check_text(data)
    except (CommandFault, FileFault) as fault:
        return _failure(call, fault)
    body: JsonObject = {"content": data.decode("utf-8", "replace"), "size": len(data)}
    if windowed:
        body |= {"total_size": file.total, "offset": file.start, "truncated": _is_part(file)}
    return Reply(body)


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler for handler in (upload_file, download_file, read_file)
}


def _open(call: Call) -> tuple[SandboxLife, str]:
    """Return the sandbox and the path that a request names.

    Raises:
        CommandFault: the gateway's.
        FileFault: a path that no file can have.
    """
    life = open_gateway(call)
    path: str = call.parameters["path"]
    if not path or "\0" in path:
        raise FileFault(errno.EINVAL, "the path is empty or holds NUL")
    return life, path


def _check_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise FileFault(errno.EINVAL, "the file is no UTF-8 text") from None


def _is_part(file: OpenFile) -> bool:
    return file.size < file.total


async def _uploaded(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the content of the form field `file`, as it comes.

    Raises:
        PlatformError: 422, the body is no such form.
    """
    if request.content_type != "multipart/form-data":
        raise _not_a_form("Must be multipart/form-data")
    try:
        reader = await request.multipart()
        part = await reader.next()
        if not isinstance(part, BodyPartReader) or part.name != "file" or part.filename is None:
            raise _not_a_form("Field required: file, with a filename")
        while piece := await part.read_chunk(_PIECE_BYTES):
            yield piece
        if await reader.next() is not None:
            raise _not_a_form("There is one field, file")
    except ValueError as error:
        raise _not_a_form(f"Not a form: {error}") from error


def _not_a_form(text: str) -> PlatformError:
    return invalid([Problem(("body",), text, "value_error")])


async def _stream(request: web.Request, file: OpenFile) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    response.content_length = file.size
    # Neither a caller who leaves nor a file that breaks off can be told by an answer any more.
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        try:
            async for piece in file.pieces():
                await response.write(piece)
            await response.write_eof()
        except FileFault:
            if request.transport is not None:
                request.transport.close()
    return response


def _failure(
    call: Call, fault: CommandFault | FileFault, statuses: dict[int, int] | None = None
) -> Reply:
    if isinstance(fault, FileFault):
        status = {**_STATUS_OF_ERRNO, **(statuses or {})}.get(fault.number, 400)
        return _error(call, status, "gateway_error", str(fault))
    if isinstance(fault, Unreachable):
        if fault.by_router:
            return _error(call, 502, "sandbox_not_found", fault.message)
        if fault.ended:
            return _error(call, 410, "sandbox_terminated", fault.message)
        return _error(call, 409, "gateway_error", fault.message)
    statuses_of_codes = {"unauthenticated": 401, "not_found": 410}
    code = "sandbox_terminated" if fault.code == "not_found" else "gateway_error"
    return _error(call, statuses_of_codes.get(fault.code, 503), code, fault.message)


def _error(call: Call, status: int, code: str, message: str) -> Reply:
    body = {"error": code, "message": message, "code": status}
    known = call.operation.spec["responses"]
    if str(status) in known or status >= 500:
        return Reply(body, status)
    # In bytes: the contract does not list what an impossible path is answered with.
    return Reply(json.dumps(body).encode(), status)
