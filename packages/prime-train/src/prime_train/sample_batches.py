"""Samples as request bodies: encoded once, as many in each as it may hold."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel

from prime_core.local_files import close_in_thread
from prime_core.sync import from_iterable, in_thread
from prime_train.errors import InvalidSampleError

__all__ = ["MAX_PAYLOAD_BYTES", "Sample", "SampleBatch", "SampleCutter", "cut_batches"]

MAX_PAYLOAD_BYTES = 25 * 1024 * 1024
# What a body is reckoned to hold besides its samples, each of which counts a comma, too. The
# envelope is in fact 14 bytes long.
_ENVELOPE = 20
_COMMA = 1

Sample: TypeAlias = Mapping[str, Any] | BaseModel


@dataclass(frozen=True)
class SampleBatch:
    """A request's worth of samples.

    Attributes:
        indexes: their places among all samples, from 0.
        body: the request's JSON.
    """

    indexes: list[int]
    body: bytes


class SampleCutter:
    """Fills bodies with samples in their order.

    Args:
        max_payload_bytes: most bytes of a body.

    Attributes:
        taken: how many samples it has been given.
        skipped: places of those that fit into no body.
    """

    def __init__(self, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        self.taken = 0
        self.skipped: list[int] = []
        self._most = max_payload_bytes
        self._begin()

    def _begin(self) -> None:
        self._lines: list[bytes] = []
        self._indexes: list[int] = []
        self._size = _ENVELOPE

    def add(self, sample: Sample) -> SampleBatch | None:
        """Takes a sample, and gives the body before it if that is full.

        Raises:
            InvalidSampleError: it can't be written as JSON.
        """
        line = encode_sample(sample, self.taken)
        index = self.taken
        self.taken += 1
        size = len(line) + _COMMA
        if size + _ENVELOPE > self._most:
            self.skipped.append(index)
            return None
        full = self.close() if self._size + size > self._most else None
        self._lines.append(line)
        self._indexes.append(index)
        self._size += size
        return full

    def close(self) -> SampleBatch | None:
        """The body that is being filled, if it holds anything."""
        if not self._lines:
            return None
        body = b'{"samples":[' + b",".join(self._lines) + b"]}"
        batch = SampleBatch(self._indexes, body)
        self._begin()
        return batch

    def cut(self, samples: Iterable[Sample]) -> Generator[SampleBatch, None, None]:
        """The bodies of samples, each made when it is asked for."""
        for sample in samples:
            if (full := self.add(sample)) is not None:
                yield full
        if (last := self.close()) is not None:
            yield last


def encode_sample(sample: object, index: int) -> bytes:
    """A sample as compact JSON in UTF-8.

    Raises:
        InvalidSampleError: it is no mapping, or holds what JSON can't.
    """
    data = sample.model_dump(mode="json") if isinstance(sample, BaseModel) else sample
    if not isinstance(data, Mapping):
        raise InvalidSampleError(index, f"is a mapping or a model, not a {type(sample).__name__}")
    try:
        text = json.dumps(dict(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        # A UnicodeEncodeError would quote the whole text.
        said = "half a character" if isinstance(error, UnicodeError) else str(error)
        raise InvalidSampleError(index, f"can't be written as JSON: {said}") from None


async def cut_batches(
    samples: Iterable[Sample] | AsyncIterable[Sample], cutter: SampleCutter
) -> AsyncGenerator[SampleBatch, None]:
    """The bodies of samples, each made when it is asked for; threads do the encoding.

    What they come from is closed with this iterator, if it can be.
    """
    if isinstance(samples, AsyncIterable):
        source = samples.__aiter__()
        add = in_thread(cutter.add)
        try:
            async for sample in source:
                if (full := await add(sample)) is not None:
                    yield full
            if (last := await in_thread(cutter.close)()) is not None:
                yield last
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
        return
    cutting = cutter.cut(samples)
    try:
        async for batch in from_iterable(cutting):
            yield batch
    finally:
        # One that a thread still works on is closed when that lets go of it.
        with suppress(ValueError):
            await close_in_thread(cutting.close)
