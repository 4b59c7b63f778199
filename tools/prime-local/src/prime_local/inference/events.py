"""The events of a streamed completion: bytes of JSON, made as cheaply as they can be."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from prime_local.contract.document import JsonObject
from prime_local.inference.choices import Choice, Delta, logprobs_of

DONE = b"[DONE]"
_encode = msgspec.json.encode
_PLACE = "\0here"


class Events:
    """Makes the chunks of one completion.

    Args:
        head: the fields that every chunk has.
        top_logprobs: how many alternatives of each token are sent; None for none at all.
    """

    def __init__(self, head: JsonObject, top_logprobs: int | None) -> None:
        self._head = head
        self._top_logprobs = top_logprobs
        self._frames: dict[int, tuple[bytes, bytes]] = {}

    def of_choices(self, choices: Sequence[Choice]) -> Iterator[bytes]:
        """Yield the chunks of all choices, a token of each in turn."""
        for choice in choices:
            yield self._chunk(choice.index, {"role": "assistant", "content": ""})
        running = [self._of_choice(choice) for choice in choices]
        for turn in itertools.zip_longest(*running):
            yield from filter(None, turn)

    def totals(self, usage: JsonObject) -> bytes:
        """Return the chunk that only tells counts."""
        return _encode({**self._head, "choices": [], "usage": usage})

    def _of_choice(self, choice: Choice) -> Iterator[bytes]:
        deltas: Iterable[Delta] = choice.deltas()
        for delta in deltas:
            if not isinstance(delta, str):
                yield self._chunk(choice.index, delta)
            elif self._top_logprobs is None:
                before, after = self._frame(choice.index)
                yield before + _encode(delta) + after
            else:
                entry = logprobs_of(delta, self._top_logprobs)
                logprobs = {"content": [entry], "refusal": None}
                yield self._chunk(choice.index, {"content": delta}, logprobs=logprobs)
        yield self._chunk(choice.index, {}, choice.finish_reason)

    def _frame(self, index: int) -> tuple[bytes, bytes]:
        """Return what stands before and after a token in the chunks of a choice."""
        if index not in self._frames:
            text = self._chunk(index, {"content": _PLACE})
            before, _, after = text.partition(_encode(_PLACE))
            self._frames[index] = before, after
        return self._frames[index]

    def _chunk(
        self, index: int, delta: JsonObject, finish_reason: str | None = None, **extra: Any
    ) -> bytes:
        choice = {"index": index, "delta": delta, "finish_reason": finish_reason, **extra}
        return _encode({**self._head, "choices": [choice]})
