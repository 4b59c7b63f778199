"""The loop thread behind every sync client, and what the generated code calls.

One daemon thread runs one event loop for the whole process. anyio's portal is not used:
it hangs a fork when it is dropped and the interpreter when it is not left, and lets the
coroutine run on after Ctrl-C.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import operator
import os
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from typing_extensions import Self

from prime_core.errors import StreamStateError
from prime_core.handover import Handover, current_handover
from prime_core.inherited import never_collect

__all__ = [
    "Facade",
    "Pulled",
    "across",
    "catch_up",
    "enter",
    "from_iterable",
    "in_thread",
    "iterate",
    "leave",
    "loop_thread",
    "next_of",
    "on_loop_thread",
    "run",
    "unwrap",
]

T = TypeVar("T")
A = TypeVar("A")

# How long Ctrl-C waits for the coroutine behind a sync call to notice its cancellation.
CANCEL_GRACE = 2.0
# A signal is noticed between slices: Windows can't interrupt a lock's wait, and elsewhere one
# that arrives just before the wait begins would be noticed at its end only.
WAIT_SLICE = 0.1 if sys.platform == "win32" else 1.0


class LoopThread:
    """A daemon thread that runs an event loop until the process ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._main, name="prime-loop", daemon=True)
        self.thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            # A task that raises SystemExit has told its waiter; asyncio stops the loop too.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Starts a coroutine on the loop, from any thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for it; Ctrl-C cancels it."""
        handover = Handover()
        outer = current_handover.set(handover)
        future: concurrent.futures.Future[T] | None = None
        try:
            future = self.submit(coroutine)
            result = _result(future)
            handover.close(received=True)
            return result
        except BaseException:
            try:
                # None: Ctrl-C came while it was handed over, and it may run all the same.
                if future is None or not future.done():
                    self._cancel(coroutine)
            finally:
                handover.close(received=False)
            raise
        finally:
            current_handover.reset(outer)

    def _cancel(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Cancels a coroutine and waits, bounded, until its own clean-up has run."""

        async def end() -> None:
            for task in asyncio.all_tasks():
                if task.get_coro() is coroutine:
                    task.cancel()
                    await asyncio.wait([task], timeout=CANCEL_GRACE)
                    return
            coroutine.close()  # it has ended, or was never started

        concurrent.futures.wait([self.submit(end())], timeout=CANCEL_GRACE + 1)


def _result(future: concurrent.futures.Future[T]) -> T:
    cancellations = _cancellations()
    while True:
        try:
            return future.result(WAIT_SLICE)
        except concurrent.futures.TimeoutError:
            if future.done():  # the timeout is the coroutine's own, or it ended just now
                return future.result()
        if _cancellations() > cancellations:
            raise asyncio.CancelledError


def _cancellations() -> int:
    """How often the task that this thread blocks was cancelled, as asyncio does on Ctrl-C."""
    if sys.version_info < (3, 11):  # there Ctrl-C raises KeyboardInterrupt itself
        return 0
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return 0 if task is None else task.cancelling()


_current: LoopThread | None = None
_lock = threading.Lock()


def loop_thread() -> LoopThread:
    """The process's loop thread, started when first needed."""
    global _current
    with _lock:
        if _current is None:
            _current = LoopThread()
        return _current


def on_loop_thread() -> bool:
    """Whether this runs on the loop thread."""
    return _current is not None and threading.current_thread() is _current.thread


def catch_up(seconds: float) -> None:
    """Waits until the loop thread, if there is one, has done what it was handed so far."""
    if _current is not None:
        concurrent.futures.wait([_current.submit(asyncio.sleep(0))], timeout=seconds)


def _after_fork_in_child() -> None:
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None:
        never_collect(_current)
        _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the loop thread and waits for its result.

    Raises:
        RuntimeError: when called on the loop thread itself, or after atexit, where it would
            wait for ever.
    """
    thread = loop_thread()
    if threading.current_thread() is thread.thread:
        coroutine.close()
        raise RuntimeError("A sync client was called on its own loop thread; await the async one.")
    if sys.is_finalizing():
        coroutine.close()
        raise RuntimeError("A sync client was called after the end of the program.")
    _warn_of_blocked_loop()
    return thread.run(coroutine)


_warned_of_blocked_loop = False


def _warn_of_blocked_loop() -> None:
    """Says once that a sync call blocks the running loop; notebooks always have one."""
    global _warned_of_blocked_loop
    if _warned_of_blocked_loop or "ipykernel" in sys.modules:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    _warned_of_blocked_loop = True
    warnings.warn(
        "A sync Prime client blocks the running event loop; use the Async client here.",
        RuntimeWarning,
        stacklevel=4,  # past the generated method that calls `run`
    )


async def across(future: concurrent.futures.Future[T]) -> T:
    """Waits on this loop for something on another; a cancellation leaves that running.

    Unlike ``asyncio.wrap_future`` it is quiet when this loop is closed before the end.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def arrived() -> None:
        if not done.done():
            done.set_result(None)

    def tell(_: object) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(arrived)

    future.add_done_callback(tell)
    await done
    return future.result()


def enter(context: AbstractAsyncContextManager[T]) -> T:
    """Enters an async context manager; its ``_main_thread_guard``, if any, in this thread."""
    guard = getattr(context, "_main_thread_guard", None)
    if guard is None:
        return run(context.__aenter__())
    guard.enter()
    try:
        return run(context.__aenter__())
    except Exception:
        guard.leave()
        raise
    except BaseException:
        guard.leave(finished=False)
        raise


def leave(
    context: AbstractAsyncContextManager[object],
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
) -> bool | None:
    """Leaves an async context manager that `enter` entered."""
    guard = getattr(context, "_main_thread_guard", None)
    finished = True
    try:
        return run(context.__aexit__(kind, error, traceback))
    except Exception:
        raise
    except BaseException:
        finished = False
        raise
    finally:
        if guard is not None:
            guard.leave(finished=finished)


def iterate(make: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
    """Runs an async iterator on the loop thread, an item a step; closes it on every road.

    It is made at once, so that its arguments are checked where it is asked for.
    """
    return _steps(make())


def _steps(source: AsyncIterator[T]) -> Iterator[T]:
    process = os.getpid()
    try:
        while (item := run(_step(source))) is not None:
            yield item[0]
            if os.getpid() != process:
                raise StreamStateError(
                    "The iterator belongs to the process that this one was forked from: make the "
                    "call here."
                )
    finally:
        close = getattr(source, "aclose", None)
        # An iterator that is left over at exit is collected when no thread runs any more; in a
        # forked child it is the parent's.
        if close is not None and not sys.is_finalizing() and os.getpid() == process:
            run(close())


async def _step(source: AsyncIterator[T]) -> tuple[T] | None:
    try:
        return (await source.__anext__(),)
    except StopAsyncIteration:
        return None


def next_of(source: AsyncIterator[T]) -> T:
    """The next item of an async iterator, as ``next`` gives it."""
    item = run(_step(source))
    if item is None:
        raise StopIteration
    return item[0]


def in_thread(function: Callable[..., T]) -> Callable[..., Awaitable[T]]:
    """Makes a plain function awaitable: each call runs on a daemon thread of its own.

    Daemon threads, because the interpreter's exit must never wait for a user's code.
    """

    async def call(*args: object) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def report(result: T | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = context.run(function, *args)
                if inspect.iscoroutine(result):
                    result.close()
                    raise TypeError("the function is async; use it with the Async client")
            except StopIteration as stop:
                # A future can't carry StopIteration.
                error = RuntimeError(f"the function raised {stop!r}")
                error.__cause__ = stop
            except BaseException as raised:
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
                loop.call_soon_threadsafe(report, result, error)

        threading.Thread(target=work, name="prime-worker", daemon=True).start()
        return await done

    return call


def from_iterable(items: Iterable[T]) -> AsyncIterator[T]:
    """Pulls a plain iterable on worker threads, so that a slow one doesn't hold the loop."""
    return Pulled(items)


class Pulled(AsyncIterator[T]):
    """A plain iterable as `from_iterable` pulls it.

    Attributes:
        source: the iterable.
    """

    _END = object()

    def __init__(self, items: Iterable[T]) -> None:
        self.source = items
        self._length = operator.length_hint(items, -1)
        self._iterator = iter(items)
        self._pull = in_thread(lambda: next(self._iterator, self._END))

    def __length_hint__(self) -> int:
        if self._length < 0:
            raise TypeError("of unknown length")  # what operator.length_hint understands
        return self._length

    async def __anext__(self) -> T:
        item = await self._pull()
        if item is self._END:
            raise StopAsyncIteration
        return cast(T, item)


class Facade(Generic[A]):
    """Base of the generated sync classes: each wraps the async object that does the work."""

    _async: A

    @classmethod
    def _wrap(cls, inner: A) -> Self:
        facade = cls.__new__(cls)
        facade._async = inner
        return facade

    def __repr__(self) -> str:
        return repr(self._async).replace("Async", "", 1)


def unwrap(facade: Facade[A]) -> A:
    """The async object behind a sync one.

    Raises:
        TypeError: it is none, such as a bare key in place of ``APIClient(key)``.
    """
    if not isinstance(facade, Facade):
        raise TypeError(
            f"expected an object of the sync SDK, such as APIClient(...), not a "
            f"{type(facade).__name__}"
        )
    return facade._async
