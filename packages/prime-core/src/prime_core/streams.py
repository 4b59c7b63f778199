"""Answers that are read while they arrive: downloads, and streams of events."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import aiohttp
from typing_extensions import Self

from prime_core.calls import Call
from prime_core.failures import failure_of_transport, finished

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
        request_id: of the call, or what the answer names in its place.
    """

    def __init__(
        self, call: Call[Any], response: aiohttp.ClientResponse, release: Callable[[], None]
    ) -> None:
        self._call = call
        self._response = response
        self._release: Callable[[], None] | None = release
        self.size = body_size(response)
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
        """
        try:
            chunk = await self._response.content.readany()
        except Exception as error:
            failure = failure_of_transport(self._call, error, reading=True)
        else:
            if chunk:
                return chunk
            raise StopAsyncIteration
        # Outside of the handler: the frames of the transport's exception hold the key.
        raise finished(self._call, failure)

    def close(self) -> None:
        """Closes the connection, unless the body has been read to its end."""
        if self._release is not None:
            self._release()
            self._release = None
            self._response.close()
