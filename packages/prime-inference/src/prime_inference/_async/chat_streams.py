"""Completions while they are made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType

from typing_extensions import Self

from prime_core.errors import APIError
from prime_core.event_streams import EventStream
from prime_core.streams import OpenStream
from prime_inference.assembly import CompletionAssembler, from_whole
from prime_inference.errors import named
from prime_inference.models import ChatCompletion, ChatCompletionChunk

__all__ = ["AsyncChatCompletionStream"]


class AsyncChatCompletionStream:
    """A completion as an async iterator of its chunks.

    It holds a connection: use it as a context manager, or iterate over it with a loop. Leaving
    either of them early closes the connection at once, and so does a cancellation. Chunks that
    nobody takes stay with the platform. Made by ``create`` with ``stream=True``.

    Args:
        stream: the answer.
    """

    def __init__(self, stream: OpenStream) -> None:
        assembler = self._assembler = CompletionAssembler()
        # Without a way back to this object: one that is dropped goes at once.
        self._events = EventStream(stream, ChatCompletionChunk, assembler.is_complete)

    @property
    def inference_id(self) -> str | None:
        """Id of the call, to quote to the platform's support."""
        return self._events.inference_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        events, add, stream = self._events, self._assembler.add, self._events.stream
        try:
            while events.open:
                if not events.received:
                    events.feed(await stream.read())
                chunk = events.take()
                if chunk is not None:
                    if events.whole:
                        chunk = self._from_whole(chunk)
                    add(chunk)
                    yield chunk
            events.check_ended()
        except APIError as error:
            raise named(error) from error.__cause__
        finally:
            events.leave()

    async def __anext__(self) -> ChatCompletionChunk:
        """The next chunk.

        Raises:
            APIError: the stream holds an error, broke, was cut short, or nothing came for
                ``idle_timeout``. What came before it remains valid.
            StreamStateError: it was closed, left or broke before its end, or is read by two at
                once.
        """
        try:
            chunk = await self._events.__anext__()
        except APIError as error:
            raise named(error) from error.__cause__
        if self._events.whole:
            chunk = self._from_whole(chunk)
        self._assembler.add(chunk)
        return chunk

    def _from_whole(self, chunk: ChatCompletionChunk) -> ChatCompletionChunk:
        try:
            return from_whole(chunk)
        except ValueError as error:
            raise self._events.unreadable(str(error)) from None

    async def get_final_completion(self) -> ChatCompletion:
        """Reads the rest, and returns all of it as one completion.

        Returns:
            Text, thoughts, tool calls and the rest, put together from the chunks; usage and
            cost where the stream told them.

        Raises:
            APIError: as for the chunks.
            StreamStateError: as for the chunks.
        """
        async for _ in self:
            pass
        return self._assembler.completion(self.inference_id)

    def get_completion_so_far(self) -> ChatCompletion:
        """What the chunks that were taken so far make up."""
        return self._assembler.completion(self.inference_id)

    async def aclose(self) -> None:
        """Closes the connection, unless the stream has been read to its end."""
        self._events.close()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a stream of a completion can't be pickled or copied: it is a connection")
