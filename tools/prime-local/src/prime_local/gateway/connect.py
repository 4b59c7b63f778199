"""The Connect protocol's server side: envelopes, codecs and error forms."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import StreamReader, web
from google.protobuf.message import DecodeError

from prime_local.calls import Call, Reply
from prime_local.contract.document import JsonObject
from prime_local.noise import add_stream_noise
from prime_local.sandboxes.commands import CommandFault, Ended, Event, Output, Started
from prime_local.spoiling import response_body

_COMPRESSED, _END = 0x01, 0x02
_HEADER_BYTES = 5
_MOST_MESSAGE_BYTES = 4 * 1024 * 1024
_STATUS = {
    "canceled": 499,
    "invalid_argument": 400,
    "out_of_range": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "already_exists": 409,
    "aborted": 409,
    "resource_exhausted": 429,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


@dataclass(frozen=True)
class Codec:
    """How messages are written: `proto` or `json`."""

    name: str

    @classmethod
    def of(cls, call: Call, *, stream: bool) -> Codec:
        """Read the codec off a request's content type.

        Raises:
            CommandFault: `invalid_argument` for a type that the method does not speak.
        """
        prefix = "application/connect+" if stream else "application/"
        content_type = call.request.content_type
        name = content_type.removeprefix(prefix)
        names = ("proto", "json") if call.assumptions.json_codec == "served" else ("proto",)
        if not content_type.startswith(prefix) or name not in names:
            raise CommandFault("invalid_argument", f"content type {content_type} is not served")
        return cls(name)

    def parse(self, data: bytes, message: Any) -> Any:
        """Fill a message.

        Raises:
            CommandFault: `invalid_argument` for bytes that are no such message.
        """
        from google.protobuf import json_format  # loads slowly

        try:
            if self.name == "proto":
                message.ParseFromString(data)
                return message
            return json_format.Parse(data, message, ignore_unknown_fields=True)
        except (DecodeError, json_format.ParseError, UnicodeDecodeError) as error:
            raise CommandFault("invalid_argument", "the message cannot be decoded") from error

    def dump(self, message: Any) -> bytes:
        if self.name == "proto":
            data: bytes = message.SerializeToString()
            return data
        from google.protobuf import json_format

        return json.dumps(json_format.MessageToDict(message), separators=(",", ":")).encode()


def envelope(payload: bytes, flags: int = 0) -> bytes:
    """Frame one message of a stream."""
    return bytes([flags]) + len(payload).to_bytes(4, "big") + payload


def open_envelope(body: bytes) -> bytes:
    """Return the message of a request stream that holds exactly one.

    Raises:
        CommandFault: `invalid_argument` for other bytes, `unimplemented` for compression.
    """
    size = int.from_bytes(body[1:_HEADER_BYTES], "big")
    if len(body) < _HEADER_BYTES or len(body) != _HEADER_BYTES + size:
        raise CommandFault("invalid_argument", "the request must be one whole envelope")
    if body[0] & _COMPRESSED:
        raise CommandFault("unimplemented", "compressed messages are not served")
    return body[_HEADER_BYTES:]


async def read_envelopes(content: StreamReader) -> AsyncIterator[bytes]:
    """Yield the messages of a request stream as they arrive.

    Raises:
        CommandFault: `invalid_argument` for other bytes, `unimplemented` for compression,
            `resource_exhausted` for a message above 4 MiB.
    """
    while True:
        try:
            head = await content.readexactly(_HEADER_BYTES)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise CommandFault("invalid_argument", "the stream breaks off") from None
            return
        size = int.from_bytes(head[1:], "big")
        if head[0] & _COMPRESSED:
            raise CommandFault("unimplemented", "compressed messages are not served")
        if size > _MOST_MESSAGE_BYTES:
            raise CommandFault("resource_exhausted", "a message is larger than 4 MiB")
        try:
            yield await content.readexactly(size)
        except asyncio.IncompleteReadError:
            raise CommandFault("invalid_argument", "the stream breaks off") from None


def read_timeout(header: str | None) -> float | None:
    """Return `connect-timeout-ms` in seconds, None when there is none.

    Raises:
        CommandFault: `invalid_argument` for anything but 1 to 10 digits.
    """
    if header is None:
        return None
    if not (header.isascii() and header.isdigit() and len(header) <= 10):
        raise CommandFault("invalid_argument", "connect-timeout-ms must be 1 to 10 digits")
    return int(header) / 1000


def failure_body(fault: CommandFault) -> JsonObject:
    return {"code": fault.code, "message": fault.message}


def failure_reply(fault: CommandFault) -> Reply:
    """The answer of a call that fails before any message is sent."""
    return Reply(failure_body(fault), _STATUS.get(fault.code, 500))


def unary_reply(codec: Codec, message: Any) -> Reply:
    """The answer of a call that returns one message."""
    return Reply(codec.dump(message), content_type=f"application/{codec.name}")


class EnvelopeStream:
    """A response stream."""

    def __init__(self, call: Call, codec: Codec) -> None:
        self._codec = codec
        self._noise = call.core.settings.noise
        self._omit = None if call.fault is None else call.fault.omit
        self.response = web.StreamResponse(
            headers={"Content-Type": f"application/connect+{codec.name}"}
        )
        self._body = response_body(call.request, self.response, call.fault)

    async def open(self) -> None:
        await self._body.start()

    async def send_message(self, message: Any) -> None:
        data = self._codec.dump(message)
        if self._noise:
            data = add_stream_noise(data, self._codec.name)
        await self._body.write(envelope(data))

    async def close(self, fault: CommandFault | None) -> None:
        """Send the end-of-stream envelope and finish the response."""
        if self._omit != "end_envelope":
            end: JsonObject = {} if fault is None else {"error": failure_body(fault)}
            if self._noise:
                end |= {"metadata": {"x-prime-noise": ["1"]}, "noiseAdded": True}
            await self._body.write(envelope(json.dumps(end).encode(), _END))
        await self._body.end()


class EventStream(EnvelopeStream):
    """A response stream of command events; the `Watcher` of a session.

    Args:
        call: what it answers.
        codec: how messages are written.
        message: what wraps an event, `StartResponse` or `ConnectResponse`.
    """

    def __init__(self, call: Call, codec: Codec, message: str) -> None:
        super().__init__(call, codec)
        self._message = message
        self._messages = call.core.messages
        self._assumptions = call.assumptions

    async def send(self, event: Event) -> None:
        if isinstance(event, Ended) and self._omit == "end_event":
            return
        await self._send_event(**self._kind(event))
        if isinstance(event, Started) and self._noise:
            # An event of a kind that nobody knows looks like one of no kind.
            await self._send_event()
            await self._send_event(keepalive=self._messages.new("KeepAlive"))

    @contextlib.asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[None]:
        """Send KeepAlive events meanwhile, if such are assumed."""
        if self._assumptions.keep_alive is None:
            yield
            return
        beat = asyncio.create_task(self._keep_alive(self._assumptions.keep_alive))
        try:
            yield
        finally:
            beat.cancel()
            await asyncio.wait({beat})

    async def _keep_alive(self, seconds: float) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                await asyncio.sleep(seconds)
                await self._send_event(keepalive=self._messages.new("KeepAlive"))

    async def _send_event(self, **kind: Any) -> None:
        new = self._messages.new
        await self.send_message(new(self._message, event=new("CommandSessionEvent", **kind)))

    def _kind(self, event: Event) -> JsonObject:
        new = self._messages.new
        if isinstance(event, Started):
            return {"start": new("StartEvent", pid=event.pid)}
        if isinstance(event, Output):
            return {"data": new("DataEvent", **{event.stream: event.data})}
        code = event.exit_code
        if not event.exited and self._assumptions.signalled_exit_code == "minus_one":
            code = -1
        return {"end": new("EndEvent", exit_code=code, exited=event.exited, status=event.status)}
