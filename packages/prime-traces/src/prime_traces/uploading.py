"""Batches on their way: several at once, bounded in memory, receipts in order, nothing lost."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import inspect
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from prime_core.errors import APIError, rebuilt
from prime_core.handover import when_received
from prime_core.sync import in_thread
from prime_core.uploads import Progress
from prime_traces.batches import Batch, CutBatch
from prime_traces.compression import compressed_pieces
from prime_traces.errors import (
    BatchRejectedError,
    ValidationRejectedError,
    named_line,
    set_partial_upload,
)
from prime_traces.models import FailedBatch, LineFormat, PartialUpload, UploadReceipt
from prime_traces.sources import BatchSource

__all__ = ["OnBatch", "Send", "UploadOptions", "check_callable", "upload_batches"]

OnBatch: TypeAlias = Callable[[Batch, UploadReceipt], object]
# Sends a body, compressed or not, in pieces, with its key.
Send: TypeAlias = Callable[[Collection[bytes], str], Awaitable[UploadReceipt]]

# Bytes of batches in memory, besides a single one that is larger: what is being cut, compressed
# and sent. More of them in flight help no more.
MEMORY = 96 * 1024 * 1024
# Seconds that a cancellation waits for the requests in flight to break off.
CANCEL_PATIENCE = 5.0
BROKEN_OFF = "it was broken off: whether it is stored is not known"


@dataclasses.dataclass(frozen=True)
class UploadOptions:
    """What the uploading methods are told besides their input, described at `upload_records`."""

    line_format: LineFormat
    context: Mapping[str, str] | None
    schema_version: int
    compress: bool
    target_batch_bytes: int
    max_attempts: int
    on_batch: OnBatch | None
    max_in_flight: int

    def __post_init__(self) -> None:
        """Refuses what is out of its range.

        The size of a batch is checked by what cuts it, and the context where it is written.
        """
        if not isinstance(self.compress, bool):
            raise TypeError(f"compress is True or False, not {self.compress!r}")
        if self.on_batch is not None:
            check_callable("on_batch", self.on_batch, "a batch and its receipt")
        if not isinstance(self.max_attempts, int) or self.max_attempts < 1:
            raise ValueError(f"max_attempts is 1 or more, not {self.max_attempts!r}")
        if self.max_in_flight not in range(1, 9):
            raise ValueError(f"max_in_flight is 1 to 8, not {self.max_in_flight!r}")


def check_callable(name: str, function: object, taking: str) -> None:
    """Refuses what can't be called with two arguments, before anything is sent.

    Args:
        name: the argument.
        function: its value.
        taking: what it is called with.
    """
    if not callable(function):
        raise TypeError(f"{name} is a function of {taking}, not {function!r}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one of C's, which does not say
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise TypeError(
            f"{name} is called with {taking}, which it does not take: {error}"
        ) from None


async def upload_batches(
    source: BatchSource,
    send: Send,
    options: UploadOptions,
    progress: Progress | None,
    size: int | None,
) -> list[UploadReceipt]:
    """Uploads every batch of a source, which is closed.

    Args:
        source: the batches.
        send: uploads one.
        options: the caller's.
        progress: told of the bytes that are stored.
        size: bytes in all, where that is known.

    Returns:
        The receipts, in the order of the batches.

    Raises:
        Exception: the failure of the first batch that failed, or what the source or ``on_batch``
            raised, when all that was in flight has come to its end. `partial_upload` tells what
            was stored.
        BaseException: a cancellation, say, which breaks off what is in flight; `partial_upload`
            names those batches as failed.
    """
    flight = _Flight(send, options, progress, size)
    # Ctrl-C in a sync call never comes by here.
    when_received(lambda: None, lambda: flight.account_to(sys.exc_info()[1]))
    try:
        try:
            await flight.take_off(source)
        except BaseException:
            await flight.abandon()
            raise
        finally:
            await source.aclose()
        return flight.receipts()
    except BaseException as error:
        flight.account_to(error)
        raise


class _Flight:
    """The batches of one upload."""

    def __init__(
        self, send: Send, options: UploadOptions, progress: Progress | None, size: int | None
    ) -> None:
        self._send = send
        self._options = options
        self._on_batch = options.on_batch
        self._progress = progress
        self._size = size
        self._done = 0
        self._held = 0
        self._flying: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()
        self._begun: list[Batch] = []
        self._receipts: dict[int, UploadReceipt] = {}
        self._failed: dict[int, tuple[Batch, Exception]] = {}
        self._failure: Exception | None = None  # of the caller's own code

    async def take_off(self, source: BatchSource) -> None:
        """Starts batches until there are no more or something fails; waits for them all."""
        last: asyncio.Task[None] | None = None
        self._tell(0)
        while await self._has_room():
            try:
                batch = await source.next()
            except Exception as error:
                self._failure = self._failure or error
                break
            if batch is None or self._stopped:
                break
            self._begun.append(batch.without_data())
            self._held += batch.size
            last = asyncio.create_task(self._fly(len(self._begun) - 1, batch, last))
            self._flying.add(last)
            del batch
        if self._flying:
            await asyncio.wait(self._flying)
        if not self._stopped and self._size is not None:
            self._tell(self._size - self._done)

    async def _has_room(self) -> bool:
        """Waits until another batch may be cut; False when something has failed."""
        most, size = self._options.max_in_flight, self._options.target_batch_bytes
        while not self._stopped and self._flying:
            if len(self._flying) < most and self._held + size <= MEMORY:
                break
            self._moved.clear()
            await self._moved.wait()
        return not self._stopped

    @property
    def _stopped(self) -> bool:
        return bool(self._failed) or self._failure is not None

    async def _fly(self, index: int, cut: CutBatch, before: asyncio.Task[None] | None) -> None:
        held = cut.size
        batch = cut.without_data()
        body: Collection[bytes] = cut.pieces
        try:
            if self._on_batch is not None:
                batch = await in_thread(cut.whole)()
                cut.pieces.clear()
                body = (batch.data,)
            if self._options.compress:
                body = await in_thread(compressed_pieces)(_taken_from(body))
                size = sum(map(len, body)) + batch.size
                self._held += size - held
                held = size
                self._moved.set()
            try:
                self._receipts[index] = receipt = await self._send(body, batch.idempotency_key)
            except ValidationRejectedError as error:
                self._failed[index] = (batch, _rejected(error, batch))
                return
            except Exception as error:
                self._failed[index] = (batch, error)
                return
            self._tell(cut.size)
            if self._on_batch is not None:
                if before is not None:
                    await asyncio.wait([before])
                await _call(self._on_batch, batch, receipt)
        except Exception as error:  # on_batch, or progress: the batch is stored
            self._failure = self._failure or error
        finally:
            self._held -= held
            task = asyncio.current_task()
            assert task is not None
            self._flying.discard(task)
            self._moved.set()

    def _tell(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._size)

    async def abandon(self) -> None:
        """Cancels what is in flight and waits for its end."""
        for task in self._flying:
            task.cancel()
        if self._flying:
            await asyncio.wait(list(self._flying), timeout=CANCEL_PATIENCE)

    def receipts(self) -> list[UploadReceipt]:
        """The receipts in the order of the batches, if there is one for each.

        Raises:
            Exception: the first failure.
        """
        error = self._failed[min(self._failed)][1] if self._failed else self._failure
        if error is not None:
            raise error
        return [self._receipts[index] for index in sorted(self._receipts)]

    def account_to(self, error: BaseException | None) -> None:
        """Lets what ends the upload say what was stored."""
        if error is None:
            return
        losses = [
            FailedBatch(
                upload_id=batch.digest,
                first_line_number=batch.first_line_number,
                last_line_number=_last_line(batch),
                error=str(self._failed[index][1]) if index in self._failed else BROKEN_OFF,
            )
            for index, batch in enumerate(self._begun)
            if index not in self._receipts
        ]
        receipts = [self._receipts[index] for index in sorted(self._receipts)]
        following = _last_line(self._begun[-1]) + 1 if self._begun else 1
        set_partial_upload(error, PartialUpload(receipts, losses, following))


def _last_line(batch: Batch) -> int:
    return batch.line_number(batch.num_lines)


def _taken_from(pieces: Collection[bytes]) -> Iterator[bytes]:
    """The pieces; a batch's own are let go of, one when the next is asked for."""
    if not isinstance(pieces, collections.deque):
        yield from pieces
        return
    while pieces:
        yield pieces.popleft()


async def _call(function: OnBatch, batch: Batch, receipt: UploadReceipt) -> None:
    """Calls the caller's function: a plain one in a thread, so that it may take its time."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object whose call is async
    ):
        result = function(batch, receipt)
    else:
        [result] = await in_thread(lambda: [function(batch, receipt)])()
    if inspect.isawaitable(result):
        await result


def _rejected(error: APIError, batch: Batch) -> BatchRejectedError:
    """The service's refusal with the line as the caller counts it."""
    rejected = rebuilt(BatchRejectedError, error)
    last = _last_line(batch)
    rejected.first_line_number, rejected.last_line_number = batch.first_line_number, last
    message = str(error.args[0]) if error.args else ""
    found = named_line(message)
    line = int(found[1]) if found else 0
    if found and 1 <= line <= batch.num_lines:
        rejected.line_number = batch.line_number(line)
        start, end = found.span()
        message = f"{message[:start]}line {rejected.line_number}{message[end:]}"
    else:
        message = f"{message}; it is one of the lines {batch.first_line_number} to {last}"
    rejected.args = (message,)
    return rejected
