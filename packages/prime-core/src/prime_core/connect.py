"""Framing of the Connect protocol: bytes in, messages out, no I/O.

A stream is a sequence of envelopes: one flag byte, the payload's length as four big-endian bytes,
the payload. The last envelope carries JSON with the outcome instead of a message.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

__all__ = [
    "MAX_MESSAGE_BYTES",
    "ConnectCode",
    "ConnectFault",
    "ConnectProtocolError",
    "EndStream",
    "Envelope",
    "EnvelopeDecoder",
    "encode_envelope",
    "parse_error_body",
    "stream_headers",
    "unary_headers",
]

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MAX_TIMEOUT_MS = 9_999_999_999

_COMPRESSED = 0x01
_END_STREAM = 0x02
_HEADER = struct.Struct(">BI")
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# Larger error bodies are not JSON from the gateway, and parsing them would block the event loop.
_MAX_ERROR_JSON_BYTES = 64 * 1024
_MAX_FAULT_TEXT = 1_000


class ConnectProtocolError(ValueError):
    """The bytes received are not a Connect stream, or exceed the size that was agreed to."""


class ConnectCode(str, Enum):
    """The 16 error codes of the Connect protocol."""

    CANCELED = "canceled"
    UNKNOWN = "unknown"
    INVALID_ARGUMENT = "invalid_argument"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    NOT_FOUND = "not_found"
    ALREADY_EXISTS = "already_exists"
    PERMISSION_DENIED = "permission_denied"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    FAILED_PRECONDITION = "failed_precondition"
    ABORTED = "aborted"
    OUT_OF_RANGE = "out_of_range"
    UNIMPLEMENTED = "unimplemented"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"
    DATA_LOSS = "data_loss"
    UNAUTHENTICATED = "unauthenticated"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def from_http_status(cls, status: int) -> ConnectCode:
        """Return the code of an HTTP error reply that names none itself."""
        return _CODE_OF_STATUS.get(status, cls.UNKNOWN)


_CODE_OF_STATUS = {
    400: ConnectCode.INTERNAL,
    401: ConnectCode.UNAUTHENTICATED,
    403: ConnectCode.PERMISSION_DENIED,
    404: ConnectCode.UNIMPLEMENTED,
    429: ConnectCode.UNAVAILABLE,
    502: ConnectCode.UNAVAILABLE,
    503: ConnectCode.UNAVAILABLE,
    504: ConnectCode.UNAVAILABLE,
}
_CODE_OF_WORD = {code.value: code for code in ConnectCode}


@dataclass(frozen=True)
class ConnectFault:
    """Why a call failed, as the other side tells it.

    Attributes:
        code: the Connect code.
        message: text for people, at most 1,000 characters; may be empty.
        reason: the gateway's own word, such as `sandbox_not_found`, when the reply came from the
            gateway rather than from the service behind it.
    """

    code: ConnectCode
    message: str
    reason: str | None = None


@dataclass(frozen=True)
class EndStream:
    """The last envelope of a stream.

    Attributes:
        error: the failure, or `None` after success.
        metadata: trailers, each name with its values.
    """

    error: ConnectFault | None = None
    metadata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Envelope: TypeAlias = bytes | EndStream
"""A decoded envelope: the bytes of a message, or the end of the stream."""


def encode_envelope(payload: bytes) -> bytes:
    """Return one uncompressed message framed for a request stream.

    Args:
        payload: the serialized message, below 4 GiB.
    """
    return _HEADER.pack(0, len(payload)) + payload


class EnvelopeDecoder:
    """Splits a response stream into envelopes, however its bytes are cut.

    Args:
        max_message_bytes: the largest payload accepted, as sent and after decompression.
    """

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max = max_message_bytes
        self._buffer = bytearray()
        self._offset = 0
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the end-of-stream envelope has been read."""
        return self._ended

    def feed(self, data: bytes) -> Iterator[Envelope]:
        """Take received bytes and return an iterator over the envelopes they complete.

        Envelopes that are not drawn from the iterator are returned by the next call.

        Raises:
            ConnectProtocolError: from the iterator, after the envelopes that were sound. The
                decoder cannot be used any further.
        """
        if self._offset:
            del self._buffer[: self._offset]
            self._offset = 0
        self._buffer += data
        return self._drain()

    def finish(self) -> None:
        """Check that the stream did not stop inside an envelope.

        A stream may lack its end-of-stream envelope: `ended` tells.

        Raises:
            ConnectProtocolError: bytes of an incomplete envelope are left over.
        """
        left = len(self._buffer) - self._offset
        if left:
            raise ConnectProtocolError(f"the stream stopped inside an envelope ({left} bytes left)")

    def _drain(self) -> Iterator[Envelope]:
        while (available := len(self._buffer) - self._offset) > 0:
            if self._ended:
                raise ConnectProtocolError("data after the end-of-stream envelope")
            flags = self._buffer[self._offset]
            if flags & ~(_COMPRESSED | _END_STREAM):
                raise ConnectProtocolError(f"invalid envelope flags 0x{flags:02x}")
            if available < _HEADER.size:
                return
            _, size = _HEADER.unpack_from(self._buffer, self._offset)
            self._check_size(size)
            if available < _HEADER.size + size:
                return
            start = self._offset + _HEADER.size
            with memoryview(self._buffer) as view:
                payload = bytes(view[start : start + size])
            envelope = self._open(flags, payload)
            self._offset = start + size
            self._ended = isinstance(envelope, EndStream)
            yield envelope

    def _open(self, flags: int, payload: bytes) -> Envelope:
        # An empty payload is not compressed even when flagged so.
        if flags & _COMPRESSED and payload:
            payload = self._decompress(payload)
        return _parse_end_stream(payload) if flags & _END_STREAM else payload

    def _decompress(self, payload: bytes) -> bytes:
        gunzip = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            message = gunzip.decompress(payload, self._max + 1)
        except zlib.error as error:
            raise ConnectProtocolError(f"invalid gzip data in an envelope: {error}") from None
        self._check_size(len(message))
        if not gunzip.eof or gunzip.unused_data:
            raise ConnectProtocolError("an envelope does not hold exactly one gzip member")
        return message

    def _check_size(self, size: int) -> None:
        if size > self._max:
            raise ConnectProtocolError(f"a message exceeds the limit of {self._max} bytes")


def parse_error_body(status: int, body: bytes) -> ConnectFault:
    """Read the body of an HTTP error reply: Connect JSON, gateway JSON or any text.

    Args:
        status: the HTTP status. It decides the code when the body names none.
        body: the reply's bytes. Beyond 64 KiB only the beginning is quoted.
    """
    # Four bytes are the most that one character takes in UTF-8.
    text = body[: 4 * _MAX_FAULT_TEXT].decode("utf-8", "replace").strip() or f"HTTP {status}"
    parsed = _load_json(body) if len(body) <= _MAX_ERROR_JSON_BYTES else None
    return _fault(
        parsed if isinstance(parsed, dict) else {}, ConnectCode.from_http_status(status), text
    )


def stream_headers(timeout_ms: int | None) -> dict[str, str]:
    """Return the headers of a streaming call in the binary codec.

    Args:
        timeout_ms: the deadline told to the server, 1 to 9,999,999,999 ms; `None` tells none.

    Raises:
        ValueError: the deadline is out of range.
    """
    return {
        "Content-Type": "application/connect+proto",
        "Connect-Content-Encoding": "identity",
        "Connect-Accept-Encoding": "gzip,identity",
        # Envelopes are compressed one by one; compressing the body as a whole would delay them.
        "Accept-Encoding": "identity",
        **_common_headers(timeout_ms),
    }


def unary_headers(timeout_ms: int | None) -> dict[str, str]:
    """Return the headers of a unary call in the binary codec.

    Args:
        timeout_ms: the deadline told to the server, 1 to 9,999,999,999 ms; `None` tells none.

    Raises:
        ValueError: the deadline is out of range.
    """
    return {
        "Content-Type": "application/proto",
        "Content-Encoding": "identity",
        "Accept-Encoding": "gzip,identity",
        **_common_headers(timeout_ms),
    }


def _common_headers(timeout_ms: int | None) -> dict[str, str]:
    headers = {"Connect-Protocol-Version": "1"}
    if timeout_ms is not None:
        if not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
            raise ValueError(f"timeout_ms must be between 1 and {MAX_TIMEOUT_MS}")
        headers["Connect-Timeout-Ms"] = str(timeout_ms)
    return headers


def _load_json(data: bytes) -> object:
    """Return the parsed value, or `None` for what is not JSON."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def _parse_end_stream(payload: bytes) -> EndStream:
    parsed = _load_json(payload)
    if not isinstance(parsed, dict):
        raise ConnectProtocolError("the end-of-stream envelope does not hold a JSON object")
    error = parsed.get("error")
    if error is not None and not isinstance(error, dict):
        raise ConnectProtocolError("the error of the end-of-stream envelope is not a JSON object")
    metadata = parsed.get("metadata")
    return EndStream(
        error=None if error is None else _fault(error, ConnectCode.UNKNOWN, ""),
        metadata=_trailers(metadata) if isinstance(metadata, dict) else {},
    )


def _trailers(metadata: dict[str, object]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(value for value in values if isinstance(value, str))
        for name, values in metadata.items()
        if isinstance(values, list)
    }


def _fault(body: dict[str, object], default_code: ConnectCode, default_text: str) -> ConnectFault:
    # The gateway's own errors repeat the HTTP status as an integer `code`.
    word = body.get("code")
    code = _CODE_OF_WORD.get(word, default_code) if isinstance(word, str) else default_code
    reason = body.get("error")
    reason = reason if isinstance(reason, str) else None
    message = body.get("message")
    text = message if isinstance(message, str) else reason or default_text
    return ConnectFault(code, text[:_MAX_FAULT_TEXT], reason)
