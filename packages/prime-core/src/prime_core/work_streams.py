"""Work on many items at once, as a stream of outcomes: items are pulled as these are taken."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Generic, Protocol, TypeVar

from prime_core.errors import StreamStateError
from prime_core.progress import ItemProgress

__all__ = ["CANCEL_GRACE", "Finished", "WorkStream"]


class Finished(Protocol):
    """What came of an item."""

    @property
    def error(self) -> BaseException | None: ...


T = TypeVar("T")
F = TypeVar("F", bound=Finished)

# How long stopping waits for cancelled work to notice.
CANCEL_GRACE = 5.0


class WorkStream(AsyncIterator[F], Generic[T, F]):
    """Works on items concurrently and yields their outcomes.

    At most ``window`` items are pulled and not yet handed out, which bounds the memory for
    endless input. Work starts with the first outcome that is asked for.

    Args:
        work: does an item's work and its clean-up; the outcome comes through ``deliver``.
        items: a plain or async iterable, pulled lazily.
        window: the most items that are under way or wait to be handed out.
        ordered: hands outcomes out in the items' order.
        raise_errors: raises an item's error in place of handing its outcome out.
        progress: is told of items and outcomes.
    """

    def __init__(
        self,
        work: Callable[[T, Callable[[F], None]], Awaitable[None]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        window: int,
        ordered: bool,
        raise_errors: bool,
        progress: ItemProgress,
    ) -> None:
        self._work = work
        self._items = items
        self._window = asyncio.Semaphore(window)
        self._ordered = ordered
        self._raise_errors = raise_errors
        self._progress = progress
        self._tasks: set[asyncio.Task[None]] = set()
        self._feeder: asyncio.Task[None] | None = None
        self._arrived = asyncio.Event()
        self._outcomes: dict[int, F] = {}
        self._handed_out = 0
        self._total: int | None = None
        self._input_error: BaseException | None = None
        self.ended = False
        self.stopped = False
        self.fatal: BaseException | None = None

    def __aiter__(self) -> WorkStream[T, F]:
        return self

    async def __anext__(self) -> F:
        self._check_readable()
        if self._feeder is None:
            self._feeder = asyncio.get_running_loop().create_task(self._feed())
        while True:
            if self.fatal is not None:
                fatal, self.fatal = self.fatal, None
                self.stop()
                raise fatal
            index = self._next_index()
            if index is not None:
                outcome = self._outcomes.pop(index)
                self._handed_out += 1
                self._window.release()
                self._progress.advance(outcome.error is None)
                if self._raise_errors and outcome.error is not None:
                    self.stop()
                    raise outcome.error
                return outcome
            if self.stopped and not self.ended:
                raise _left()
            if self._handed_out == self._total:
                self.ended = True
                self._progress.stop()
                if self._input_error is not None:
                    error, self._input_error = self._input_error, None
                    raise error
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()

    def _check_readable(self) -> None:
        if self.stopped and not self.ended and self.fatal is None:
            raise _left()
        if not self.here:
            raise StreamStateError(
                "These results belong to another event loop, or to the process that this one was "
                "forked from: make the call here."
            )

    @property
    def here(self) -> bool:
        """Whether its work is on this loop; another's, a forked parent's say, can't be ended."""
        feeder = self._feeder
        return feeder is None or feeder.get_loop() is asyncio.get_running_loop()

    def _next_index(self) -> int | None:
        if self._ordered:
            return self._handed_out if self._handed_out in self._outcomes else None
        return next(iter(self._outcomes), None)

    async def _feed(self) -> None:
        """Pulls items while there is room for them, and starts their work."""
        count = 0
        try:
            if isinstance(self._items, AsyncIterable):
                async for item in self._items:
                    await self._start(count, item)
                    count += 1
            else:
                for item in self._items:
                    await self._start(count, item)
                    count += 1
        except asyncio.CancelledError as error:
            if self.stopped:
                raise
            self._input_error = RuntimeError("the items' iterator was cancelled")
            self._input_error.__cause__ = error
        except BaseException as error:  # raised once the items before it are handed out
            self._input_error = error
        finally:
            if inspect.isasyncgen(self._items):  # nobody else holds it
                await self._items.aclose()
        self._total = count
        self._arrived.set()

    async def _start(self, index: int, item: T) -> None:
        await self._window.acquire()
        self._progress.started()

        def deliver(outcome: F) -> None:
            self._outcomes[index] = outcome
            self._arrived.set()

        task = asyncio.get_running_loop().create_task(self._run(item, deliver))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, item: T, deliver: Callable[[F], None]) -> None:
        try:
            await self._work(item, deliver)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # Not raised here: asyncio would end the loop under everybody's feet.
            self.end(error)

    def end(self, error: BaseException) -> None:
        """Ends the stream with an error, raised where the next outcome is asked for."""
        if self.fatal is None:
            self.fatal = error
        self._arrived.set()

    def stop(self) -> list[asyncio.Task[None]]:
        """Cancels all work.

        Returns:
            The tasks that still have to end.
        """
        self.stopped = True
        self._arrived.set()  # who waits for more is told
        self._progress.stop()
        tasks = [*self._tasks, *([self._feeder] if self._feeder is not None else [])]
        for task in tasks:
            task.cancel()
        self._total = self._handed_out
        return [task for task in tasks if not task.done()]

    async def aclose(self) -> None:
        """Ends the work of a stream that nobody takes outcomes of any more."""
        if not self.here:
            self.stopped = True
            return
        tasks = self.stop()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_GRACE)


def _left() -> StreamStateError:
    return StreamStateError("The results were left before their end: make the call anew.")
