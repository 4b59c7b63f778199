"""Answers that are read while they arrive: downloads, and streams of events."""

from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
from collections.abc import Callable, Sized
from types import TracebackType
from typing import Any

import aiohttp
from typing_extensions import Self

from prime_core.calls import Call
from prime_core.errors import APIError, APIResponseError, StreamStateError
from prime_core.failures import failure_of_transport, finished, without_key
from prime_core.inherited import never_collect
from prime_core.outcomes import Failure, Outcome

__all__ = ["OpenStream", "body_size"]


def body_size(response: aiohttp.ClientResponse) -> int | None:
    """The bytes of a body as it is read; its length is another where it travels compressed."""
    return None if "Content-Encoding" in response.headers else response.content_length


class OpenStream:
    """The body of a successful answer, as an async iterator over its chunks.

    It holds a connection: use it as a context manager. Leaving it before its end closes the
    connection at once; what is not read is not received either. It is given up when nothing
    arrives for the call's idle limit, or at the end of its timeout.

    Attributes:
        size: bytes of the whole body, where the answer says so.
        content_type: media type of the body, in lower case and without parameters.
        request_id: of the call, or what the answer names in its place.
    """

    __slots__ = (
        "_buffer",
        "_call",
        "_content",
        "_loop",
        "_process",
        "_reading",
        "_release",
        "_response",
        "content_type",
        "request_id",
        "size",
    )

    def __init__(
        self, call: Call[Any], response: aiohttp.ClientResponse, release: Callable[[], None]
    ) -> None:
        self._call = call
        self._response = response
        self._content = response.content
        # What has come; an answer without a body has none.
        self._buffer: Sized = getattr(response.content, "_buffer", ())
        self._release: Callable[[], None] | None = release
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._reading = False
        self.size = body_size(response)
        self.content_type = response.content_type.lower()
        self.request_id: str = response.headers.get("X-Request-Id") or call.request_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes, as many as have arrived.

        Raises:
            APIError: the stream broke, was cut short, or stood still for too long.
            StreamStateError: it was closed, somebody else reads it just now, or it belongs to
                another event loop.
        """
        chunk = await self.read()
        if chunk:
            return chunk
        raise StopAsyncIteration

    async def read(self) -> bytes:
        """As `__anext__`, but none at the end."""
        self._check_readable()
        self._reading = True
        content, buffer = self._content, self._buffer
        try:
            if not buffer and self._may_wait(content):
                # What `readany` does too, with two coroutines more. The garbage collector goes
                # through those of thousands of streams that wait, which costs as much as reading.
                content._waiter = self._loop.create_future()
                try:
                    with content._timer:
                        await content._waiter
                finally:
                    content._waiter = None
            if buffer:
                # aiohttp itself would keep back what has come once a failure has come behind it.
                received = b"".join([content._read_nowait_chunk(-1) for _ in range(len(buffer))])
                if content._exception is not None or self._is_late(content):
                    self._response.close()  # nothing comes behind a failure
                return received
            return await content.readany()
        except Exception as error:
            closed = self._release is None
            failure = failure_of_transport(self._call, error, reading=True)
        finally:
            self._reading = False
        # Outside of the handler: the frames of the transport's exception hold the key.
        if closed:
            raise StreamStateError("The stream was closed while it was read.")
        raise finished(self._call, failure)

    @staticmethod
    def _may_wait(content: aiohttp.StreamReader) -> bool:
        """Whether neither the end nor a failure has come."""
        # First whether the end has come: the reader of an answer without a body is another.
        over = content.is_eof() or content._exception is not None
        return not over and content._protocol.connected and content._waiter is None

    def _is_late(self, content: aiohttp.StreamReader) -> bool:
        """Whether the total limit has passed, which aiohttp tells only those who wait."""
        if self._call.timeout is None:
            return False
        try:
            content._timer.assert_timeout()
        except asyncio.TimeoutError:
            content.set_exception(asyncio.TimeoutError())
            return True
        return False

    def is_anothers(self) -> bool:
        """Whether somebody else reads it just now, or it belongs to another event loop."""
        return self._reading or asyncio._get_running_loop() not in (None, self._loop)

    def _check_readable(self) -> None:
        if self._reading:
            raise StreamStateError("The stream is read by two at once: let one of them read it.")
        if self._loop is not asyncio.get_running_loop():
            raise StreamStateError(
                "The stream belongs to another event loop, or to the process that this one was "
                "forked from: make the call here."
            )

    @property
    def inference_id(self) -> str | None:
        """What the inference service calls this answer, for its support."""
        return self._call.inference_id

    def redacted(self, text: str) -> str:
        """A part of its body that is to be shown, without the key that a server may echo."""
        return without_key(self._call, text.encode()).decode()

    def failed(self, error: APIError, *, ambiguous: bool = False) -> APIError:
        """Closes it, and completes an error that its body gave rise to with what is known.

        Args:
            error: what went wrong.
            ambiguous: whether the platform may have done its work all the same.
        """
        self.close()
        outcome = Outcome.AMBIGUOUS if ambiguous else Outcome.FINAL
        return finished(self._call, Failure(outcome, error))

    def unreadable(self, why: str) -> APIError:
        """Closes it, and makes the error for a body that is not what was asked for."""
        error = APIResponseError(f"The answer of {self._call.target.host} can't be used: {why}.")
        error.status_code = self._response.status
        return self.failed(error)

    def close(self) -> None:
        """Closes the connection, unless the body has been read to its end."""
        if self._process != os.getpid():  # the parent reads on
            never_collect(self._response)
            self._release = None
        if self._release is not None:
            self._release()
            self._release = None
            self._response.close()

    def close_from_anywhere(self) -> None:
        """Closes it from any thread, soon."""
        with contextlib.suppress(RuntimeError):  # its loop is closed, and the connection with it
            self._loop.call_soon_threadsafe(self.close)

    def __del__(self) -> None:
        release = getattr(self, "_release", None)
        if release is None:
            return
        if self._process != os.getpid():  # the parent reads on
            never_collect(self._response)
            return
        warnings.warn("an answer was left unread; close it", ResourceWarning, stacklevel=2)
        # The garbage collector runs on any thread.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_give_up, release, self._response)


def _give_up(release: Callable[[], None], response: aiohttp.ClientResponse) -> None:
    """Closes the connection of a stream that is gone: what nobody reads is paid for, too."""
    release()
    response.close()
