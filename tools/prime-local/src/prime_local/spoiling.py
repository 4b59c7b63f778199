"""How a fault rule spoils an answer on its way out."""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web

from prime_local.calls import Reply, http_response
from prime_local.faults import FaultRule

_HTML = b"<!DOCTYPE html><html><body><h1>Bad gateway</h1></body></html>"
_BAD_CHUNK = b"no-size\r\n"


class ResponseBody:
    """A response body that is written in pieces."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self._request = request
        self._response = response

    async def start(self) -> None:
        await self._response.prepare(self._request)

    async def write(self, piece: bytes) -> None:
        """Send a piece.

        Raises:
            ConnectionError: the connection is gone.
        """
        await self._response.write(piece)

    async def end(self) -> None:
        await self._response.write_eof()


class SpoiledBody(ResponseBody):
    """A body that a fault rule spoils after `after_envelopes` good pieces."""

    def __init__(self, request: web.Request, response: web.StreamResponse, rule: FaultRule) -> None:
        super().__init__(request, response)
        self._rule = rule
        self._good = rule.after_envelopes
        self._stalled = False
        # A stream has several writers, and a spoiled piece takes time.
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        await asyncio.sleep(self._rule.delay_after)
        await super().start()

    async def write(self, piece: bytes) -> None:
        async with self._lock:
            await self._write(piece)

    async def _write(self, piece: bytes) -> None:
        if self._good > 0:
            self._good -= 1
            await super().write(piece)
            return
        rule = self._rule
        if rule.reset is not None:
            abort(self._request.transport)
            raise ConnectionResetError("reset by a fault rule")
        if rule.garbage:
            await self._break_off(_HTML)
        if rule.truncate is not None:
            await self._break_off(piece[: rule.truncate])
        if rule.bad_chunk is not None:
            await self._break_off(piece[: rule.bad_chunk], _BAD_CHUNK)
        if rule.stall is not None and not self._stalled:
            self._stalled = True
            half = len(piece) // 2
            await super().write(piece[:half])
            await asyncio.sleep(rule.stall)
            piece = piece[half:]
        if rule.trickle is None:
            await super().write(piece)
            return
        for byte in piece:
            await super().write(bytes([byte]))
            await asyncio.sleep(rule.trickle)

    async def _break_off(self, last: bytes, after: bytes = b"") -> None:
        """Send something last and close the connection before the body's end."""
        if last:
            await super().write(last)
        transport = self._request.transport
        if transport is not None:
            transport.write(after)
            transport.close()
        raise ConnectionResetError("broken off by a fault rule")


def response_body(
    request: web.Request, response: web.StreamResponse, rule: FaultRule | None
) -> ResponseBody:
    """Return the writer of a response's body, which a rule may spoil."""
    if rule is None:
        return ResponseBody(request, response)
    return SpoiledBody(request, response, rule)


async def send_spoiled(request: web.Request, reply: Reply, rule: FaultRule) -> web.StreamResponse:
    """Send an answer as a rule wants it."""
    if rule.reset is not None:
        await asyncio.sleep(rule.delay_after)
        return reset(request)
    if rule.garbage:
        await asyncio.sleep(rule.delay_after)
        return http_response(Reply(_HTML, 200, content_type="text/html"))
    response = web.StreamResponse(
        status=reply.status, headers={**reply.headers, "Content-Type": reply.content_type}
    )
    if rule.bad_chunk is None:
        response.content_length = len(reply.data())
    body = SpoiledBody(request, response, rule)
    try:
        await body.start()
        await body.write(reply.data())
        await body.end()
    except ConnectionError:
        # That was the fault, or the caller did not wait for it.
        pass
    return response


async def send_injected(request: web.Request, usual: Reply, rule: FaultRule) -> web.StreamResponse:
    """Send the answer that a rule puts in the place of processing.

    Args:
        request: what is not processed.
        usual: the service's answer of the rule's status; a body and headers of the rule's win.
        rule: what it wants.
    """
    body = rule.body.encode() if rule.body is not None else usual.data()
    headers = {name.title(): value for name, value in rule.headers.items()}
    content_type = headers.pop("Content-Type", usual.content_type)
    reply = Reply(body, usual.status, headers, content_type)
    spoils = (rule.truncate, rule.bad_chunk, rule.trickle, rule.stall)
    if any(value is not None for value in spoils):
        return await send_spoiled(request, reply, rule)
    return http_response(reply)


def reset(request: web.Request) -> web.StreamResponse:
    """Break the request's connection; what is returned goes nowhere."""
    abort(request.transport)
    return web.Response(status=499)


def abort(transport: asyncio.BaseTransport | None) -> None:
    """Break a connection with a TCP reset."""
    if isinstance(transport, asyncio.Transport):
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
