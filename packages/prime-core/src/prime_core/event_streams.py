"""Answers that are streams of events, each of which holds a JSON object."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import BaseModel
from pydantic import ValidationError as InvalidData

from prime_core.decoding import MAX_ANSWER
from prime_core.errors import APIError, APIResponseError
from prime_core.outcomes import error_in_stream
from prime_core.sse import EventParser, ServerSentEvent
from prime_core.streams import OpenStream

__all__ = ["EventStream"]

M = TypeVar("M", bound=BaseModel)

DONE = "[DONE]"
SHOWN = 100


class EventStream(Generic[M]):
    """What the events of an answer hold, as an async iterator of models.

    It reads no further than it is asked to: what is not asked for stays with the platform. It
    ends at the event ``[DONE]``, or at the end of the input when everything is there. A
    service that does not stream answers with one JSON object, which is the only item.

    Args:
        stream: the answer; it is closed at the end, whatever that is.
        model: what an event holds; it keeps fields that it does not know.
        complete: whether the stream may end without ``[DONE]``, asked when it does.

    Attributes:
        whole: whether the answer is one JSON object in place of a stream.
        ended: whether the end has come; False for a stream that was left or broke.
    """

    def __init__(self, stream: OpenStream, model: type[M], complete: Callable[[], bool]) -> None:
        self._stream = stream
        self._model = model
        self._complete = complete
        self._parser = EventParser()
        self._events: deque[ServerSentEvent] = deque()
        self._received_all = False
        self._open = True
        self.whole = stream.content_type == "application/json"
        self.ended = False

    @property
    def inference_id(self) -> str | None:
        """What the inference service calls this answer, for its support."""
        return self._stream.inference_id

    async def __anext__(self) -> M:
        """The next item.

        Raises:
            APIError: the stream holds an error, broke, was cut short or stood still too long.
        """
        while self._open:
            if self._events:
                event = self._events.popleft()
                if (data := event.data).strip() == DONE:
                    self.ended = True
                    self.close()
                elif data and not data.isspace():
                    return self._read(event)
            elif self._received_all:
                self.ended = self._complete()
                self.close()
                if not self.ended:
                    raise self._cut()
            else:
                await self._receive_more()
        raise StopAsyncIteration

    def close(self) -> None:
        """Ends it; the connection is closed at once, unless all has been received."""
        self._open = False
        self._events.clear()
        self._stream.close()

    async def _receive_more(self) -> None:
        try:
            if self.whole:
                await self._receive_whole()
            else:
                await self._receive_piece()
        except BaseException:  # a cancellation, too
            self.close()
            raise

    async def _receive_piece(self) -> None:
        async for piece in self._stream:
            try:
                self._events.extend(self._parser.feed(piece))
            except APIError as error:
                raise self._failed(error, ambiguous=True) from None
            return
        self._received_all = True
        last = self._parser.finish()
        if last is not None and (last.data.strip() == DONE or _is_json(last.data)):
            self._events.append(last)

    async def _receive_whole(self) -> None:
        pieces: list[bytes] = []
        size = 0
        async for piece in self._stream:
            pieces.append(piece)
            size += len(piece)
            if size > MAX_ANSWER:
                raise self._failed(APIResponseError("The answer is too large."), ambiguous=True)
        text = b"".join(pieces).decode("utf-8", "replace")
        self._events += [ServerSentEvent(text), ServerSentEvent(DONE)]

    def _read(self, event: ServerSentEvent) -> M:
        if event.type == "error" or ('"error"' in event.data and _has_error(event.data)):
            raise self._failed(error_in_stream(self._stream.redacted(event.data)))
        try:
            return self._model.model_validate_json(event.data)
        except InvalidData:
            start = json.dumps(self._stream.redacted(event.data[:SHOWN]))
            error = APIResponseError(f"The stream holds an event that can't be read: {start}")
        raise self._failed(error, ambiguous=True)

    def _cut(self) -> APIError:
        return self._failed(APIResponseError("The stream was cut short."), ambiguous=True)

    def _failed(self, error: APIError, *, ambiguous: bool = False) -> APIError:
        self.close()
        return self._stream.failed(error, ambiguous=ambiguous)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _has_error(text: str) -> bool:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and bool(data.get("error"))
