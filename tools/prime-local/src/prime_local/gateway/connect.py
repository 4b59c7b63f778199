"""The Connect protocol's server side: envelopes, codecs and error forms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from google.protobuf.message import DecodeError

from prime_local.calls import Reply
from prime_local.contract.document import JsonObject
from prime_local.sandboxes.commands import CommandFault, Ended, Event, Output, Started

if TYPE_CHECKING:
    from prime_local.contract.protobuf import CommandMessages

_COMPRESSED, _END = 0x01, 0x02
_HEADER_BYTES = 5
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
    def of(cls, content_type: str, *, stream: bool) -> Codec:
        """Read the codec off a content type.

        Raises:
            CommandFault: `invalid_argument` for a type that the method does not speak.
        """
        prefix = "application/connect+" if stream else "application/"
        name = content_type.removeprefix(prefix)
        if not content_type.startswith(prefix) or name not in ("proto", "json"):
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


class EventStream:
    """A response stream of command events; the `Watcher` of a session."""

    def __init__(self, request: web.Request, codec: Codec, messages: CommandMessages) -> None:
        self._request = request
        self._codec = codec
        self._messages = messages
        self.response = web.StreamResponse(
            headers={"Content-Type": f"application/connect+{codec.name}"}
        )

    async def open(self) -> None:
        await self.response.prepare(self._request)

    async def send(self, event: Event) -> None:
        await self.response.write(envelope(self._codec.dump(self._message(event))))

    async def close(self, fault: CommandFault | None) -> None:
        """Send the end-of-stream envelope and finish the response."""
        end = {} if fault is None else {"error": failure_body(fault)}
        await self.response.write(envelope(json.dumps(end).encode(), _END))
        await self.response.write_eof()

    def _message(self, event: Event) -> Any:
        new = self._messages.new
        if isinstance(event, Started):
            kind = {"start": new("StartEvent", pid=event.pid)}
        elif isinstance(event, Output):
            kind = {"data": new("DataEvent", **{event.stream: event.data})}
        else:
            kind = {"end": self._end(event)}
        return new("StartResponse", event=new("CommandSessionEvent", **kind))

    def _end(self, event: Ended) -> Any:
        return self._messages.new(
            "EndEvent", exit_code=event.exit_code, exited=event.exited, status=event.status
        )
