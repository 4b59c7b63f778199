"""Answers that are streams of events, each of which holds a JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import BaseModel
from pydantic import ValidationError as InvalidData

from prime_core.decoding import MAX_ANSWER
from prime_core.errors import APIError, APIResponseError, StreamStateError
from prime_core.outcomes import error_in_answer, holds_error
from prime_core.repairs import ODD_NAMES, repaired
from prime_core.sse import ErrorData, EventParser
from prime_core.streams import OpenStream

__all__ = ["EventStream"]

M = TypeVar("M", bound=BaseModel)

DONE = b"[DONE]"
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
        stream: the answer.
        received: events that have not been taken, the next one last.
        whole: whether the answer is one JSON object in place of a stream.
        open: whether more may come.
        ended: whether the end has come; False for a stream that was left or broke.
    """

    # Thousands of streams are read in turn, so that what one needs is rarely in a cache.
    __slots__ = (
        "_body",
        "_complete",
        "_model",
        "_parser",
        "_received_all",
        "_start",
        "_validator",
        "ended",
        "open",
        "received",
        "stream",
        "whole",
    )

    def __init__(self, stream: OpenStream, model: type[M], complete: Callable[[], bool]) -> None:
        self.stream = stream
        self._model = model
        model.model_rebuild()  # it is built when first needed
        # What `model_validate_json` uses, which costs a fifth of the reading by itself.
        self._validator = model.__pydantic_validator__
        self._complete = complete
        self._parser = EventParser()
        self.received: list[bytes] = []
        self._start: bytes | None = None
        self._body = bytearray()  # of an answer that is no stream
        self._received_all = False
        self.open = True
        self.whole = stream.content_type == "application/json"
        self.ended = False

    @property
    def inference_id(self) -> str | None:
        """What the inference service calls this answer, for its support."""
        return self.stream.inference_id

    async def __anext__(self) -> M:
        """The next item.

        Raises:
            APIError: the stream holds an error, broke, was cut short or stood still too long.
            StreamStateError: it was closed, left or broke before.
        """
        while self.open:
            if not self.received:
                try:
                    piece = await self.stream.read()
                except BaseException:  # a cancellation, too
                    self.leave()
                    raise
                self.feed(piece)
            item = self.take()
            if item is not None:
                return item
        self.check_ended()
        raise StopAsyncIteration

    def check_ended(self) -> None:
        """Tells the end of one that is no longer `open` from what only looks like it.

        Raises:
            StreamStateError: it was closed, left or broke before its end.
        """
        if not self.ended:
            raise StreamStateError(
                "The stream was closed, left or broke before its end: make the call anew."
            )

    def take(self) -> M | None:
        """The next item of those that have been received; None when there is none.

        It is no longer `open` if there will be none. With `feed`, when nothing is left of what was
        received, it does what iterating does, for who reads many streams at once: each await within
        an await costs time an item.

        Raises:
            APIError: the stream holds an error, or was cut short.
        """
        while self.received:
            data = self.received.pop()
            if data.startswith(b"{"):
                return self._read(data)
            text = data.strip()
            if text == DONE:
                self.ended = True
                self.close()
            elif text:
                return self._read(data)
        if self._received_all and self.open:
            self.ended = self._complete()
            self.close()
            if not self.ended:
                raise self._cut_short()
        return None

    def feed(self, piece: bytes) -> None:
        """Takes what was read of `stream`; nothing is its end.

        Raises:
            APIError: it is too large, or holds nothing.
        """
        if self.whole:
            self._feed_whole(piece)
        elif not piece:
            self._received_all = True
            self._add_last(self._parser.finish())
        else:
            try:
                events = self._parser.feed(piece)
            except APIError as error:
                raise self._failed(error, ambiguous=True) from None
            if self._start is None:
                self._start = piece[:SHOWN]
            events.reverse()
            self.received = events + self.received if self.received else events

    def _feed_whole(self, piece: bytes) -> None:
        if piece:
            self._body += piece
            if len(self._body) > MAX_ANSWER:
                raise self._failed(APIResponseError("The answer is too large."), ambiguous=True)
            return
        data = bytes(self._body)
        self._body.clear()
        if not data.strip():
            raise self._cut_short()
        self.received = [DONE, data]

    def _add_last(self, data: bytes | None) -> None:
        """Takes an event that the input broke off in, if it is whole all the same."""
        if data is not None and (data.strip() == DONE or _is_json(data)):
            self.received.insert(0, data)

    def close(self) -> None:
        """Ends it; the connection is closed at once, unless all has been received."""
        self.open = False
        self.received.clear()
        self.stream.close()

    def leave(self) -> None:
        """Closes it for one who reads no further, unless it is somebody else who reads it."""
        if not self.stream.is_anothers():
            self.close()

    def _cut_short(self) -> APIError:
        kind = self.stream.content_type
        text = "The stream was cut short."
        if not self.whole and kind != "text/event-stream" and self._start:
            start = json.dumps(self.stream.redacted(_text(self._start)))
            text = f"The answer is no stream of events but {kind}: {start}"
        return self._failed(APIResponseError(text), ambiguous=True)

    def _read(self, data: bytes) -> M:
        item: M
        if type(data) is ErrorData or (b'"error"' in data and holds_error(data)):
            where = "The answer holds" if self.whole else "The stream broke off with"
            text = self.stream.redacted(_text(data))
            raise self._failed(error_in_answer(text, f"{where} an error"))
        try:
            item = self._validator.validate_json(data)
            return item
        except (InvalidData, *ODD_NAMES):
            text = _text(data)
        try:
            item = self._validator.validate_json(text)  # now what was not UTF-8 is
            return item
        except (InvalidData, *ODD_NAMES):
            mended = repaired(self._model, text)
            if mended is not None:
                return mended
            start = json.dumps(self.stream.redacted(text[:SHOWN]))
            error = APIResponseError(f"The stream holds an event that can't be read: {start}")
        raise self._failed(error, ambiguous=True)

    def unreadable(self, why: str) -> APIError:
        """Closes it, and makes the error for an item that is not what was asked for."""
        return self._failed(APIResponseError(f"The answer can't be used: {why}"), ambiguous=True)

    def _failed(self, error: APIError, *, ambiguous: bool = False) -> APIError:
        self.close()
        return self.stream.failed(error, ambiguous=ambiguous)


def _text(data: bytes) -> str:
    """Data as text, with U+FFFD for what is not UTF-8."""
    return data.decode("utf-8", "replace")


def _is_json(data: bytes) -> bool:
    try:
        json.loads(_text(data))
    except (ValueError, RecursionError):
        return False
    return True
