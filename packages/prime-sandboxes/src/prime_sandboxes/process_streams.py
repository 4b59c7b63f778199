"""The stream of a live process: how it is opened, and which of its failures may pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType

from typing_extensions import Self

from prime_core.calls import Call
from prime_core.connect import ConnectProtocolError, encode_envelope, stream_headers
from prime_core.deadlines import timeout
from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    ServerError,
    UnauthorizedError,
)
from prime_core.operations import Operation
from prime_core.streams import OpenStream
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.command_streams import EventDecoder
from prime_sandboxes.gateway import Access, Gateway
from prime_sandboxes.operations import COMMAND_SESSION_START

__all__ = ["ProcessStream", "may_pass"]

# The longest deadline that the gateway is known to take; a process that lives longer is
# attached to again.
STREAM_TIMEOUT = 86_400.0
# The gateway announces a process before anything else; one that runs it knows already.
FIRST_EVENT_TIMEOUT = 30.0
REOPEN_TIMEOUT = 10.0
# No source says how often the gateway sends KeepAlive events, or whether it does. Services of
# this kind send one every 30 to 90 s, and TCP itself notices a dead peer within 200 s: so much
# silence means that something between us swallows everything. A silent process that is healthy
# is only attached to again.
IDLE_TIMEOUT = 300.0

# Codes that say nothing against the request itself.
_PASSING_CODES = frozenset(
    {
        "aborted",
        "canceled",
        "data_loss",
        "deadline_exceeded",
        "internal",
        "resource_exhausted",
        "unavailable",
        "unknown",
    }
)


def may_pass(error: APIError) -> bool:
    """Whether a stream that failed so is worth to be opened again."""
    if error.code in _PASSING_CODES:
        return True
    if error.code is not None:
        return False
    return error.status_code in (None, 408, 499) or isinstance(error, ServerError)


class ProcessStream:
    """The events of a process while a connection lasts.

    Args:
        stream: the answer's body.
        call: the call that it answers.
        decoder: has taken what was read so far.
        first: the events that have arrived.
    """

    def __init__(
        self,
        stream: OpenStream,
        call: Call[OpenStream],
        decoder: EventDecoder,
        first: list[pb.CommandSessionEvent],
    ) -> None:
        self._stream = stream
        self._call = call
        self._decoder = decoder
        self._first = first

    @classmethod
    async def open(
        cls, gateway: Gateway, sandbox_id: str, operation: Operation, request: bytes
    ) -> ProcessStream:
        """Opens a stream and waits for its first event.

        Args:
            gateway: the client's.
            sandbox_id: the sandbox.
            operation: the row of Start or Connect.
            request: the message that it takes.

        Raises:
            APIError: the stream could not be opened.
        """
        body = encode_envelope(request)
        limit = FIRST_EVENT_TIMEOUT if operation is COMMAND_SESSION_START else REOPEN_TIMEOUT

        async def start(access: Access) -> ProcessStream:
            call: Call[OpenStream] = gateway.prepare(
                access,
                operation,
                None,
                headers=stream_headers(round(STREAM_TIMEOUT * 1000)),
                body=body,
                timeout=STREAM_TIMEOUT,
                idle=IDLE_TIMEOUT,
            )
            try:
                async with timeout(limit):
                    return await cls._begin(gateway, call)
            except asyncio.TimeoutError as error:
                if isinstance(error, APITimeoutError):
                    raise
            late = APITimeoutError(
                f"The gateway did not announce the process within {limit:g} s.",
                sent="unknown",
            )
            late.operation, late.host = operation.id, call.target.host
            raise late

        return await gateway.authorized(sandbox_id, start)

    @classmethod
    async def _begin(cls, gateway: Gateway, call: Call[OpenStream]) -> ProcessStream:
        stream = await gateway.perform(call)
        made = cls(stream, call, EventDecoder(), [])
        try:
            while not made._first and not made._decoder.ended:
                made._first += made._decode(await stream.__anext__())
        except StopAsyncIteration:
            pass  # told by whoever asks for the events
        except BaseException:
            stream.close()
            raise
        fault = made._decoder.fault
        if fault is not None and fault.code == "unauthenticated" and not made._first:
            stream.close()
            raise made.failure(f"HTTP 401: {fault.message}", UnauthorizedError)
        return made

    def failure(self, text: str, cls: type[APIError] = APIError) -> APIError:
        """The error of a stream that was answered but went wrong."""
        fault = self._decoder.fault
        error = cls(text)
        error.code = None if fault is None else str(fault.code)
        error.request_id = self._stream.request_id
        error.operation, error.host = self._call.operation.id, self._call.target.host
        return error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()

    async def events(self) -> AsyncIterator[pb.CommandSessionEvent]:
        """Yields the events in order; returns when the gateway has ended the stream.

        Raises:
            APIError: it was ended by a failure, broke, or stood still for too long.
        """
        for event in self._first:
            yield event
        async for chunk in self._stream:
            for event in self._decode(chunk):
                yield event
        fault = self._decoder.fault
        if fault is not None:
            text = f"The process can't be followed: {fault.code}: {fault.message}"
            raise self.failure(text)
        try:
            self._decoder.finish()
        except ConnectProtocolError as error:
            raise self.failure(f"The stream can't be read: {error}", APIResponseError) from None

    def _decode(self, chunk: bytes) -> list[pb.CommandSessionEvent]:
        try:
            return list(self._decoder.feed(chunk))
        except ConnectProtocolError as error:
            raise self.failure(f"The stream can't be read: {error}", APIResponseError) from None


def is_unsent(error: APIError) -> bool:
    """Whether a request that failed so surely did not arrive."""
    return isinstance(error, APIConnectionError) and error.sent == "no"
