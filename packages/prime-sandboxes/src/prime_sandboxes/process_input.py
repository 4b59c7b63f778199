"""The input of a live process, as the gateway takes it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterator

from prime_core.calls import Body
from prime_core.connect import (
    ConnectProtocolError,
    EndStream,
    EnvelopeDecoder,
    encode_envelope,
    stream_headers,
)
from prime_core.errors import APIResponseError
from prime_core.uploads import Upload
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.operations import COMMAND_SESSION_SEND_INPUT, COMMAND_SESSION_STREAM_INPUT
from prime_sandboxes.process_following import Wanted
from prime_sandboxes.process_streams import IDLE_TIMEOUT, STREAM_TIMEOUT

__all__ = ["pieces_of", "send_piece", "stream_input", "to_bytes"]

PIECE_TIMEOUT = 30.0
# How much of a write travels in one message.
PIECE = 1024 * 1024


def to_bytes(data: object) -> bytes:
    """Input as bytes.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"input is bytes, not {type(data).__name__}")
    return bytes(data)


def pieces_of(data: bytes) -> Iterator[bytes]:
    """Input in pieces that fit into a message."""
    return (data[start : start + PIECE] for start in range(0, len(data), PIECE))


async def send_piece(gateway: Gateway, wanted: Wanted, piece: bytes) -> None:
    """Writes a piece, once, however often it must be sent.

    Raises:
        APIError: it may have been written in part.
    """
    request = pb.SendInputRequest(
        session=wanted.selector, input=_input(wanted, piece), input_uuid=str(uuid.uuid4())
    )
    await gateway.unary(
        wanted.sandbox_id,
        COMMAND_SESSION_SEND_INPUT,
        request,
        pb.SendInputResponse,
        timeout=PIECE_TIMEOUT,
    )


async def stream_input(gateway: Gateway, wanted: Wanted, source: AsyncIterable[bytes]) -> None:
    """Writes what a source yields, in one request.

    Raises:
        APIError: it may have been written in part.
    """

    async def messages() -> AsyncIterator[bytes]:
        start = pb.StreamInputRequest.StartEvent(session=wanted.selector)
        yield _envelope(pb.StreamInputRequest(start=start))
        async for data in source:
            for piece in pieces_of(to_bytes(data)):
                event = pb.StreamInputRequest.DataEvent(input=_input(wanted, piece))
                yield _envelope(pb.StreamInputRequest(data=event))

    await gateway.request(
        wanted.sandbox_id,
        COMMAND_SESSION_STREAM_INPUT,
        _read_end,
        headers=stream_headers(round(STREAM_TIMEOUT * 1000)),
        body=Upload(messages, size=None, rewindable=False),
        timeout=STREAM_TIMEOUT,
        idle=IDLE_TIMEOUT,
    )


async def _read_end(status: int, body: Body) -> None:
    decoder = EnvelopeDecoder()
    end: EndStream | None = None
    try:
        for envelope in decoder.feed(await body.read()):
            if isinstance(envelope, EndStream):
                end = envelope
        decoder.finish()
    except ConnectProtocolError as error:
        raise APIResponseError(f"The gateway's answer can't be read: {error}") from None
    if end is None:
        raise APIResponseError("The gateway's answer breaks off; a part may be written.")
    if end.error is not None:
        fault = end.error
        raise APIResponseError(
            f"The input was refused: {fault.code}: {fault.message}", code=str(fault.code)
        )


def _input(wanted: Wanted, piece: bytes) -> pb.CommandInput:
    return pb.CommandInput(pty=piece) if wanted.terminal else pb.CommandInput(stdin=piece)


def _envelope(message: pb.StreamInputRequest) -> bytes:
    return encode_envelope(message.SerializeToString())
