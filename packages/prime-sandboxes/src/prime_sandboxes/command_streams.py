"""Commands in a sandbox, over the Connect protocol: their streams, and the end of them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from google.protobuf.message import DecodeError

from prime_core.calls import Body, Call
from prime_core.connect import (
    ConnectFault,
    ConnectProtocolError,
    EndStream,
    EnvelopeDecoder,
    encode_envelope,
    stream_headers,
)
from prime_core.errors import APIError, APIResponseError, UnauthorizedError
from prime_core.text import TextDecoder
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.gateway import Access, Gateway
from prime_sandboxes.operations import COMMAND_SESSION_SEND_SIGNAL, COMMAND_SESSION_START

__all__ = ["CommandOutput", "EventDecoder", "run_session", "send_signal"]

# How much longer than the platform the client waits for a command's end, so that the two
# deadlines don't race.
DEADLINE_MARGIN = 15.0
SIGNAL_TIMEOUT = 10.0
# The most output of a command that is kept in memory.
MAX_OUTPUT = 256 * 1024 * 1024
DECODE_PIECE = 256 * 1024


async def _decoded(data: bytearray) -> str:
    # In pieces: 20 MiB of what is not UTF-8 would hold the event loop for a second.
    if len(data) <= DECODE_PIECE:
        return data.decode("utf-8", "replace")
    decoder = TextDecoder()
    pieces = []
    for start in range(0, len(data), DECODE_PIECE):
        pieces.append(decoder.feed(bytes(data[start : start + DECODE_PIECE])))
        await asyncio.sleep(0)
    return "".join([*pieces, decoder.finish()])


@dataclass
class CommandOutput:
    """A command's session: what its stream has brought, and where it came from."""

    session_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None
    fault: ConnectFault | None = None
    overflowed: bool = False
    begun: bool = False  # whether any event came, so that the command may have run
    call: Call[None] | None = None  # that starts it

    @property
    def sent(self) -> bool:
        """Whether the start may have arrived."""
        return self.call is not None and self.call.attempts > 0

    async def text(self) -> tuple[str, str]:
        """Both outputs decoded, so that no character is cut in two."""
        return await _decoded(self.stdout), await _decoded(self.stderr)

    def failure(self, cls: type[APIError], message: str, *, status: int | None = None) -> APIError:
        """The error of a stream that was answered but did not bring a result."""
        return cls(
            message,
            status_code=status,
            code=None if self.fault is None else str(self.fault.code),
            request_id=None if self.call is None else self.call.request_id,
            operation=COMMAND_SESSION_START.id,
            host=None if self.call is None else self.call.target.host,
        )


Collect: TypeAlias = Callable[[Body, CommandOutput], Awaitable[None]]


async def run_session(
    gateway: Gateway,
    sandbox_id: str,
    spec: pb.CommandSpec,
    timeout: float,
    output: CommandOutput,
    *,
    collect: Collect | None = None,
    idle: float | None = None,
) -> None:
    """Runs a command to its end and collects its output.

    Args:
        gateway: the client's.
        sandbox_id: the sandbox.
        spec: the command.
        timeout: seconds that the platform lets it run.
        output: takes what arrives, also when the call fails in the end.
        collect: reads the stream in place of what keeps all of it.
        idle: seconds without output after which it is given up.

    Raises:
        APIError: the stream could not be opened, or broke.
    """
    request = pb.StartRequest(command=spec, stdin=False, session_uuid=output.session_uuid)
    body = encode_envelope(request.SerializeToString())

    async def read(status: int, stream: Body) -> None:
        await (collect or _collect)(stream, output)

    async def start(access: Access) -> None:
        output.call = gateway.prepare(
            access,
            COMMAND_SESSION_START,
            read,
            headers=stream_headers(max(1, round(timeout * 1000))),
            body=body,
            timeout=timeout + DEADLINE_MARGIN,
            idle=idle,
        )
        await gateway.perform(output.call)
        fault = output.fault
        if fault is not None and fault.code == "unauthenticated" and not output.begun:
            error = output.failure(UnauthorizedError, f"HTTP 401: {fault.message}", status=401)
            output.fault = None
            raise error

    await gateway.authorized(sandbox_id, start)


async def send_signal(
    gateway: Gateway, sandbox_id: str, session_uuid: str, number: pb.Signal
) -> None:
    """Sends a signal to a command by its session's uuid.

    Raises:
        APIError: the gateway could not be told.
    """
    request = pb.SendSignalRequest(
        session=pb.CommandSessionSelector(session_uuid=session_uuid),
        signal=number,
        signal_uuid=str(uuid.uuid4()),
    )
    await gateway.unary(
        sandbox_id,
        COMMAND_SESSION_SEND_SIGNAL,
        request,
        pb.SendSignalResponse,
        timeout=SIGNAL_TIMEOUT,
    )


async def _collect(stream: Body, output: CommandOutput) -> None:
    """Reads a Start stream to its end into ``output``."""
    decoder = EventDecoder()
    try:
        async for chunk in stream.iter_any():
            for event in decoder.feed(chunk):
                _take(event, output)
        decoder.finish()
    finally:
        output.fault = decoder.fault


class EventDecoder:
    """Splits a Start or Connect stream into events, however its bytes are cut.

    Attributes:
        fault: the failure that ended the stream, once it has been read.
    """

    def __init__(self) -> None:
        self._envelopes = EnvelopeDecoder()
        self.fault: ConnectFault | None = None

    @property
    def ended(self) -> bool:
        """Whether the envelope that ends the stream has been read."""
        return self._envelopes.ended

    def feed(self, data: bytes) -> Iterator[pb.CommandSessionEvent]:
        """The events that received bytes complete.

        Raises:
            ConnectProtocolError: from the iterator, after the events that were sound.
        """
        for envelope in self._envelopes.feed(data):
            if isinstance(envelope, EndStream):
                self.fault = envelope.error
            else:
                yield _parse_event(envelope)

    def finish(self) -> None:
        """Checks that the stream did not stop inside an envelope.

        Raises:
            ConnectProtocolError: it did.
        """
        self._envelopes.finish()


def _parse_event(message: bytes) -> pb.CommandSessionEvent:
    try:
        return pb.StartResponse.FromString(message).event
    except DecodeError as error:
        raise ConnectProtocolError(f"a message of the stream can't be decoded: {error}") from None


def _take(event: pb.CommandSessionEvent, output: CommandOutput) -> None:
    output.begun = True
    kind = event.WhichOneof("event")
    if kind == "data":
        data = event.data
        if data.WhichOneof("output") == "stderr":
            output.stderr += data.stderr
        else:  # a terminal's output counts as standard output
            output.stdout += data.stdout or data.pty
        if len(output.stdout) + len(output.stderr) > MAX_OUTPUT:
            output.overflowed = True
            raise APIResponseError(
                f"The command wrote more than {MAX_OUTPUT >> 20} MiB; redirect its output to a "
                "file in the sandbox."
            )
    elif kind == "end":
        output.exit_code = event.end.exit_code
