"""Samples on their way: several requests at once, each sent once, and an account of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Literal, TypeAlias

from prime_train.errors import PushSamplesError
from prime_train.models.evaluations import FailedSamples, PushedSamples
from prime_train.sample_batches import SampleBatch, SampleCutter

__all__ = ["SampleProgress", "SamplesNotStored", "SendSamples", "push_batches"]

# Told of how many more samples are dealt with: stored, or skipped.
SampleProgress: TypeAlias = Callable[[int], object]
# Seconds that a cancellation waits for the requests in flight to break off.
CANCEL_PATIENCE = 5.0


class SamplesNotStored(Exception):
    """A request with samples failed.

    Attributes:
        error: why.
        stored: whether its samples are stored: ``no`` or ``unknown``.
    """

    def __init__(self, error: Exception, stored: Literal["no", "unknown"]) -> None:
        super().__init__(str(error))
        self.error = error
        self.stored = stored


# Sends a body; raises SamplesNotStored.
SendSamples: TypeAlias = Callable[[bytes], Awaitable[None]]


async def push_batches(
    batches: AsyncGenerator[SampleBatch, None],
    cutter: SampleCutter,
    send: SendSamples,
    *,
    max_concurrent: int,
    progress: SampleProgress | None,
) -> PushedSamples:
    """Sends every batch; the first failure lets those in flight end, and starts no more.

    Args:
        batches: made when they are asked for; closed at the end.
        cutter: what makes them, which knows what it has left out.
        send: sends one.
        max_concurrent: most batches in memory.
        progress: told of samples that are dealt with.

    Raises:
        PushSamplesError: something failed when samples were stored, or may be.
        Exception: the failure itself, where none is.
    """
    push = _Push(cutter, send, progress)
    try:
        await push.run(batches, max_concurrent)
    except BaseException:
        await push.abandon()
        raise
    finally:
        await batches.aclose()
    return push.account()


class _Push:
    def __init__(
        self, cutter: SampleCutter, send: SendSamples, progress: SampleProgress | None
    ) -> None:
        self._cutter = cutter
        self._send = send
        self._progress = progress
        self._flying: set[asyncio.Task[None]] = set()
        self._pushed = 0
        self._requests = 0
        self._told_skipped = 0
        self._next_index = 0
        self._failed: list[FailedSamples] = []
        self._failure: Exception | None = None

    async def run(self, batches: AsyncGenerator[SampleBatch, None], most: int) -> None:
        while self._failure is None:
            try:
                batch = await anext(batches, None)
                self._tell_skipped()
            except Exception as error:  # of the caller's own
                self._failure = self._failure or error
                break
            if batch is None:
                self._next_index = self._cutter.taken
                break
            if self._failure is not None:
                break
            self._next_index = batch.indexes[-1] + 1
            task = asyncio.create_task(self._fly(batch))
            self._flying.add(task)
            task.add_done_callback(self._flying.discard)
            del batch
            while len(self._flying) >= most:
                await asyncio.wait(self._flying, return_when=asyncio.FIRST_COMPLETED)
        if self._flying:
            await asyncio.wait(self._flying)

    async def _fly(self, batch: SampleBatch) -> None:
        count = len(batch.indexes)
        try:
            await self._send(batch.body)
            self._pushed += count
            self._requests += 1
            self._tell(count)
        except SamplesNotStored as failed:
            self._failed.append(
                FailedSamples(indexes=batch.indexes, stored=failed.stored, error=str(failed.error))
            )
            self._failure = self._failure or failed.error
        except Exception as error:  # of the caller's progress
            self._failure = self._failure or error

    def _tell_skipped(self) -> None:
        new = len(self._cutter.skipped) - self._told_skipped
        self._told_skipped += new
        for _ in range(new):
            self._tell(1)

    def _tell(self, count: int) -> None:
        if self._progress is not None:
            self._progress(count)

    async def abandon(self) -> None:
        """Cancels what is in flight and waits for its end."""
        for task in self._flying:
            task.cancel()
        if self._flying:
            await asyncio.wait(set(self._flying), timeout=CANCEL_PATIENCE)

    def account(self) -> PushedSamples:
        skipped = self._cutter.skipped
        if self._failure is None:
            return PushedSamples(
                samples_pushed=self._pushed,
                samples_skipped=len(skipped),
                skipped=list(skipped),
                requests=self._requests,
            )
        if not self._pushed and all(each.stored == "no" for each in self._failed):
            raise self._failure
        raise PushSamplesError(
            self._failure,
            samples_pushed=self._pushed,
            skipped=list(skipped),
            failed=sorted(self._failed, key=lambda each: each.indexes[0]),
            next_index=self._next_index,
        ) from self._failure
