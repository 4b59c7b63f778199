"""The gateway of a sandbox: its tokens, and commands over the Connect protocol."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from google.protobuf.message import DecodeError

from prime_core.calls import Body, Target
from prime_core.connect import (
    ConnectFault,
    ConnectProtocolError,
    EndStream,
    EnvelopeDecoder,
    encode_envelope,
    stream_headers,
    unary_headers,
)
from prime_core.errors import APIError, APIResponseError, UnauthorizedError
from prime_core.per_loop import PerLoop
from prime_core.single_flight import SingleFlight
from prime_core.transport import AsyncTransport
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.models import GatewayAuth
from prime_sandboxes.operations import (
    COMMAND_SESSION_SEND_SIGNAL,
    COMMAND_SESSION_START,
    CREATE_SANDBOX_AUTH_TOKEN,
)

__all__ = ["CommandOutput", "Gateway"]

T = TypeVar("T")

# A token is renewed so many seconds before its end.
RENEW_EARLY = 60.0
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


@dataclass(frozen=True)
class _Access:
    """A token in use: the host with its header, the path below it, the end."""

    target: Target
    path: Mapping[str, str]
    renew_at: float


class Gateway:
    """Calls to the gateways of a client's sandboxes.

    Tokens are kept in memory only, one refresh at a time is under way for a sandbox, and
    a call that is refused with 401 is made once more with a new token.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._access: dict[str, _Access] = {}
        self._lock = threading.Lock()  # a fleet's deletes forget tokens on the loop thread
        self._refresh = PerLoop(lambda: SingleFlight(self._fetch))

    def seed(self, sandbox_id: str, auth: GatewayAuth) -> None:
        """Keeps a token that came with another answer."""
        self._keep(sandbox_id, auth)

    def forget(self, sandbox_id: str) -> None:
        """Drops the token of a sandbox."""
        with self._lock:
            self._access.pop(sandbox_id, None)

    def clear(self) -> None:
        """Drops every token."""
        self._access.clear()

    def _keep(self, sandbox_id: str, auth: GatewayAuth) -> _Access:
        headers = {
            "User-Agent": self._transport.user_agent,
            "Authorization": f"Bearer {auth.token.get_secret_value()}",
        }
        access = _Access(
            target=Target.of(auth.gateway_url.rstrip("/"), headers),
            path={"user_ns": auth.user_ns, "job_id": auth.job_id},
            renew_at=auth.expires_at.timestamp() - RENEW_EARLY,
        )
        now = time.time()
        with self._lock:
            self._access.pop(sandbox_id, None)
            # Tokens stand in the order of their issue, which is that of their ends.
            while self._access and next(iter(self._access.values())).renew_at <= now:
                del self._access[next(iter(self._access))]
            self._access[sandbox_id] = access
        return access

    async def _fetch(self, sandbox_id: str) -> _Access:
        auth = await self._transport.request(
            CREATE_SANDBOX_AUTH_TOKEN, GatewayAuth, path={"sandbox_id": sandbox_id}
        )
        return self._keep(sandbox_id, auth)

    async def _authorized(self, sandbox_id: str, call: Callable[[_Access], Awaitable[T]]) -> T:
        """Makes a call with a valid token; a token refused with 401 is replaced once."""
        access = self._access.get(sandbox_id)
        if access is None or access.renew_at <= time.time():
            access = await self._refresh.get().do(sandbox_id)
        try:
            return await call(access)
        except UnauthorizedError:
            if self._access.get(sandbox_id) is access:
                self.forget(sandbox_id)
        access = self._access.get(sandbox_id) or await self._refresh.get().do(sandbox_id)
        return await call(access)

    async def run(
        self,
        sandbox_id: str,
        spec: pb.CommandSpec,
        session_uuid: str,
        timeout: float,
        output: CommandOutput,
    ) -> None:
        """Runs a command to its end and collects its output.

        Args:
            sandbox_id: the sandbox.
            spec: the command.
            session_uuid: names the command for later signals.
            timeout: seconds that the platform lets it run.
            output: takes what arrives, also when the call fails in the end.

        Raises:
            APIError: the stream could not be opened, or broke.
        """
        request = pb.StartRequest(command=spec, stdin=False, session_uuid=session_uuid)
        body = encode_envelope(request.SerializeToString())

        async def read(status: int, stream: Body) -> None:
            await _collect(stream, output)

        async def start(access: _Access) -> None:
            call = self._transport.prepare_elsewhere(
                COMMAND_SESSION_START,
                read,
                access.target,
                path=access.path,
                headers=stream_headers(max(1, round(timeout * 1000))),
                body=body,
                timeout=timeout + DEADLINE_MARGIN,
            )
            output.host, output.request_id = access.target.host, call.request_id
            await self._transport.perform(call)
            fault = output.fault
            if fault is not None and fault.code == "unauthenticated" and not output.begun:
                error = output.failure(UnauthorizedError, f"HTTP 401: {fault.message}", status=401)
                output.fault = None
                raise error

        await self._authorized(sandbox_id, start)

    async def kill(self, sandbox_id: str, session_uuid: str) -> None:
        """Kills a command by its session's uuid.

        Raises:
            APIError: the gateway could not be told.
        """
        request = pb.SendSignalRequest(
            session=pb.CommandSessionSelector(session_uuid=session_uuid),
            signal=pb.SIGNAL_SIGKILL,
            signal_uuid=str(uuid.uuid4()),
        )

        async def send(access: _Access) -> None:
            async def read(status: int, answer: Body) -> None:
                await answer.read()

            call = self._transport.prepare_elsewhere(
                COMMAND_SESSION_SEND_SIGNAL,
                read,
                access.target,
                path=access.path,
                headers=unary_headers(round(SIGNAL_TIMEOUT * 1000)),
                body=request.SerializeToString(),
                timeout=SIGNAL_TIMEOUT,
            )
            await self._transport.perform(call)

        await self._authorized(sandbox_id, send)


async def _collect(stream: Body, output: CommandOutput) -> None:
    """Reads a Start stream to its end into ``output``."""
    decoder = EnvelopeDecoder()
    async for chunk in stream.iter_any():
        for envelope in decoder.feed(chunk):
            if isinstance(envelope, EndStream):
                output.fault = envelope.error
            else:
                _take(_parse(envelope), output)
    decoder.finish()


def _parse(message: bytes) -> pb.CommandSessionEvent:
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
