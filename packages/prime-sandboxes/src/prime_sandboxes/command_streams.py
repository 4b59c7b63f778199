"""Commands in a sandbox, over the Connect protocol: their streams, and the end of them."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
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
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.gateway import Access, Gateway
from prime_sandboxes.operations import COMMAND_SESSION_SEND_SIGNAL, COMMAND_SESSION_START

__all__ = ["CommandOutput", "kill_session", "parse_event", "run_session"]

# How much longer than the platform the client waits for a command's end, so that the two
# deadlines don't race.
DEADLINE_MARGIN = 15.0
SIGNAL_TIMEOUT = 10.0
# The most output of a command that is kept in memory.
MAX_OUTPUT = 256 * 1024 * 1024


@dataclass
class CommandOutput:
    """What a command's stream has brought, and where it came from."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None
    fault: ConnectFault | None = None
    overflowed: bool = False
    begun: bool = False  # whether any event came, so that the command may have run
    host: str | None = None
    request_id: str | None = None

    def text(self) -> tuple[str, str]:
        """Both outputs decoded after the end, so that no character is cut in two."""
        return self.stdout.decode("utf-8", "replace"), self.stderr.decode("utf-8", "replace")

    def failure(self, cls: type[APIError], message: str, *, status: int | None = None) -> APIError:
        """The error of a stream that was answered but did not bring a result."""
        return cls(
            message,
            status_code=status,
            code=None if self.fault is None else str(self.fault.code),
            request_id=self.request_id,
            operation=COMMAND_SESSION_START.id,
            host=self.host,
        )


Collect: TypeAlias = Callable[[Body, CommandOutput], Awaitable[None]]


async def run_session(
    gateway: Gateway,
    sandbox_id: str,
    spec: pb.CommandSpec,
    session_uuid: str,
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
        session_uuid: names the command for later signals.
        timeout: seconds that the platform lets it run.
        output: takes what arrives, also when the call fails in the end.
        collect: reads the stream in place of what keeps all of it.
        idle: seconds without output after which it is given up.

    Raises:
        APIError: the stream could not be opened, or broke.
    """
    request = pb.StartRequest(command=spec, stdin=False, session_uuid=session_uuid)
    body = encode_envelope(request.SerializeToString())

    async def read(status: int, stream: Body) -> None:
        await (collect or _collect)(stream, output)

    async def start(access: Access) -> None:
        call: Call[None] = gateway.prepare(
            access,
            COMMAND_SESSION_START,
            read,
            headers=stream_headers(max(1, round(timeout * 1000))),
            body=body,
            timeout=timeout + DEADLINE_MARGIN,
            idle=idle,
        )
        output.host, output.request_id = call.target.host, call.request_id
        await gateway.perform(call)
        fault = output.fault
        if fault is not None and fault.code == "unauthenticated" and not output.begun:
            error = output.failure(UnauthorizedError, f"HTTP 401: {fault.message}", status=401)
            output.fault = None
            raise error

    await gateway.authorized(sandbox_id, start)


async def kill_session(gateway: Gateway, sandbox_id: str, session_uuid: str) -> None:
    """Kills a command by its session's uuid.

    Raises:
        APIError: the gateway could not be told.
    """
    request = pb.SendSignalRequest(
        session=pb.CommandSessionSelector(session_uuid=session_uuid),
        signal=pb.SIGNAL_SIGKILL,
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
    decoder = EnvelopeDecoder()
    async for chunk in stream.iter_any():
        for envelope in decoder.feed(chunk):
            if isinstance(envelope, EndStream):
                output.fault = envelope.error
            else:
                _take(parse_event(envelope), output)
    decoder.finish()


def parse_event(message: bytes) -> pb.CommandSessionEvent:
    """An event out of a message of a Start or Connect stream."""
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
