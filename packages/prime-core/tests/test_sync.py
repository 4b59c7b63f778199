"""The loop thread behind the sync clients, within one process."""

from __future__ import annotations

import asyncio
import contextvars
import operator
import os
import signal
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType

import pytest
from raw_server import RawServer, answer
from rows import KEY

from prime_core import sync
from prime_core._sync.api_client import APIClient
from prime_core.config import Config
from prime_core.errors import APITimeoutError, NotFoundError
from prime_core.handover import when_received
from prime_core.sync import (
    across,
    enter,
    from_iterable,
    in_thread,
    iterate,
    leave,
    loop_thread,
    run,
)


async def nap(seconds: float, value: object = None) -> object:
    await asyncio.sleep(seconds)
    return value


@pytest.fixture
def client(server: RawServer) -> Iterator[APIClient]:
    with APIClient(config=Config(KEY, base_url=server.url)) as client:
        yield client


def test_a_sync_client_works_in_a_script(server: RawServer, client: APIClient) -> None:
    server.steps = [answer(200, {"id": "t1"}), answer(404, {"detail": "gone"})]
    assert client.get("/thing", {"page": 2}) == {"id": "t1"}
    with pytest.raises(NotFoundError, match="gone"):
        client.delete("/thing/x")
    assert server.targets == ["GET /api/v1/thing?page=2", "DELETE /api/v1/thing/x"]


def test_a_sync_client_works_in_threads(server: RawServer, client: APIClient) -> None:
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda: results.append(client.get("/thing"))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [{}] * 20


def test_a_sync_client_works_beside_many_async_runs(server: RawServer, client: APIClient) -> None:
    for _ in range(20):
        assert client.get("/thing") == {}
        assert asyncio.run(nap(0, 1)) == 1
    assert server.connections == 1


def test_in_a_running_loop_it_works_and_says_once_that_it_blocks(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "_warned_of_blocked_loop", False)

    async def main() -> None:
        assert client.get("/thing") == {}
        assert client.get("/thing") == {}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
        assert client.get("/thing") == {}
    blocked = [found for found in caught if issubclass(found.category, RuntimeWarning)]
    assert len(blocked) == 1
    assert "Async client" in str(blocked[0].message)
    assert Path(blocked[0].filename).name == "test_sync.py", "it points at the caller's line"


def test_a_sync_call_on_the_loop_thread_is_refused() -> None:
    async def main() -> None:
        run(nap(0))

    with pytest.raises(RuntimeError, match="own loop thread"):
        run(main())


@pytest.mark.parametrize("error", [LookupError("x"), APITimeoutError("x"), TimeoutError("x")])
def test_an_error_of_the_coroutine_is_the_callers(error: Exception) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(type(error), match="x") as caught:
        run(fail())
    # A plain TimeoutError is copied by asyncio on its way between threads.
    assert caught.value is error or type(error) is TimeoutError


def test_a_result_that_arrives_as_a_slice_of_the_wait_ends_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sync, "WAIT_SLICE", 0.001)
    for _ in range(300):
        assert run(nap(0.001, "x")) == "x"


def test_the_loop_thread_survives_a_system_exit() -> None:
    async def leave_all() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit) as caught:
        run(leave_all())
    assert caught.value.code == 3
    assert run(nap(0, "alive")) == "alive"
    assert loop_thread().thread.is_alive()


async def test_waiting_across_loops_gets_results_and_errors() -> None:
    assert await across(loop_thread().submit(nap(0.01, "x"))) == "x"

    async def fail() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        await across(loop_thread().submit(fail()))


async def test_cancelling_a_wait_across_loops_leaves_the_work_running() -> None:
    work = loop_thread().submit(nap(0.1, "done"))
    wait = asyncio.ensure_future(across(work))
    await asyncio.sleep(0.01)
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    assert await across(work) == "done"


def test_a_loop_that_closes_before_the_work_across_ends_hears_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = loop_thread().submit(nap(0.1, "done"))

    async def main() -> None:
        waits = [asyncio.ensure_future(across(work)) for _ in range(3)]
        await asyncio.sleep(0.01)
        for wait in waits:
            wait.cancel()

    asyncio.run(main())
    assert work.result(5) == "done"
    time.sleep(0.05)
    assert caplog.text == ""


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.002])
def test_what_a_sync_call_made_is_discarded_when_ctrl_c_comes_with_its_result(
    seconds: float,
) -> None:
    for _ in range(20):
        told: list[str] = []

        async def make(told: list[str] = told) -> None:
            when_received(lambda: told.append("kept"), lambda: told.append("discarded"))
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(seconds)

        with pytest.raises(KeyboardInterrupt):
            run(make())
        assert told == ["discarded"]


def test_what_a_sync_call_made_is_kept_once_its_caller_has_it() -> None:
    told: list[str] = []

    async def make() -> str:
        when_received(lambda: told.append("kept"), lambda: told.append("discarded"))
        await asyncio.sleep(0.01)
        assert told == []
        return "made"

    assert run(make()) == "made"
    assert told == ["kept"]


async def test_what_an_async_call_made_is_its_callers_at_once() -> None:
    told: list[str] = []
    when_received(lambda: told.append("kept"), lambda: told.append("discarded"))
    assert told == ["kept"]


class Numbers:
    """An async iterator that knows whether it was closed."""

    def __init__(self, error_at: int | None = None) -> None:
        self.closed = False
        self.error_at = error_at

    async def make(self) -> AsyncIterator[int]:
        try:
            for number in range(5):
                await asyncio.sleep(0)
                if number == self.error_at:
                    raise LookupError(number)
                yield number
        finally:
            await asyncio.sleep(0)
            self.closed = True


def test_an_iterator_is_read_to_its_end_and_closed() -> None:
    numbers = Numbers()
    assert list(iterate(numbers.make)) == [0, 1, 2, 3, 4]
    assert numbers.closed


def test_an_iterator_that_is_left_early_is_closed() -> None:
    numbers = Numbers()
    for number in iterate(numbers.make):
        if number == 2:
            break
    assert numbers.closed


def test_an_iterator_that_fails_is_closed() -> None:
    numbers = Numbers(error_at=2)
    with pytest.raises(LookupError):
        list(iterate(numbers.make))
    assert numbers.closed


def test_what_an_iterator_is_made_of_is_checked_at_once() -> None:
    def make() -> AsyncIterator[int]:
        raise ValueError("page")

    with pytest.raises(ValueError, match="page"):
        iterate(make)


class Context:
    """An async context manager with a guard of the main thread, like a fleet."""

    def __init__(self, fails: bool = False) -> None:
        self.steps: list[str] = []
        self.fails = fails
        self._main_thread_guard = self

    def enter(self) -> None:
        self.steps.append(f"guard {threading.current_thread() is threading.main_thread()}")

    def leave(self, *, finished: bool = True) -> None:
        self.steps.append(f"unguard {finished}")

    async def __aenter__(self) -> str:
        self.steps.append("enter")
        if self.fails:
            raise LookupError("no")
        return "inside"

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.steps.append(f"leave {kind.__name__ if kind else None}")


def test_a_context_is_guarded_in_the_callers_thread() -> None:
    context = Context()
    assert enter(context) == "inside"
    leave(context, LookupError, LookupError(), None)
    assert context.steps == ["guard True", "enter", "leave LookupError", "unguard True"]


def test_a_context_that_cannot_be_entered_is_not_left_guarded() -> None:
    context = Context(fails=True)
    with pytest.raises(LookupError):
        enter(context)
    assert context.steps == ["guard True", "enter", "unguard True"]


async def test_a_plain_function_runs_beside_the_loop_on_a_daemon_thread() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("mine")

    def work(first: int, second: int) -> tuple[int, bool, str, bool]:
        time.sleep(0.1)
        thread = threading.current_thread()
        return first + second, thread.daemon, variable.get(), thread is threading.main_thread()

    started = time.monotonic()
    results = await asyncio.gather(*(in_thread(work)(number, 1) for number in range(10)))
    assert time.monotonic() - started < 0.8
    assert results == [(number + 1, True, "mine", False) for number in range(10)]


@pytest.mark.parametrize("error", [LookupError("x"), SystemExit(3), KeyboardInterrupt()])
async def test_what_a_plain_function_raises_arrives_whole(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await in_thread(work)()
    assert caught.value is error


async def test_a_stop_iteration_arrives_as_an_error_that_a_future_can_carry() -> None:
    def work() -> None:
        raise StopIteration(7)

    with pytest.raises(RuntimeError, match=r"StopIteration\(7\)") as caught:
        await in_thread(work)()
    assert isinstance(caught.value.__cause__, StopIteration)


async def test_a_plain_function_whose_caller_is_cancelled_ends_unheard(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = threading.Event()

    def work() -> None:
        time.sleep(0.05)
        ended.set()
        raise LookupError("unheard")

    call = asyncio.ensure_future(in_thread(work)())
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(ended.wait, 5)
    await asyncio.sleep(0.02)
    assert caplog.text == ""


async def test_a_slow_plain_iterable_does_not_hold_the_loop() -> None:
    def slow() -> Iterator[int]:
        for number in range(3):
            time.sleep(0.1)
            yield number

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    assert [number async for number in from_iterable(slow())] == [0, 1, 2]
    ticking.cancel()
    assert ticks > 10


async def test_an_error_of_a_plain_iterable_arrives() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise LookupError("x")

    items = from_iterable(broken())
    assert await items.__anext__() == 1
    with pytest.raises(LookupError):
        await items.__anext__()


async def test_a_plain_iterable_is_pulled_only_as_it_is_asked() -> None:
    pulled: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            pulled.append(len(pulled))
            yield pulled[-1]

    items = from_iterable(endless())
    assert [await items.__anext__() for _ in range(3)] == [0, 1, 2]
    await asyncio.sleep(0.02)
    assert pulled == [0, 1, 2]


def test_the_length_of_a_plain_iterable_is_passed_on_where_it_is_known() -> None:
    assert operator.length_hint(from_iterable([1, 2, 3]), -1) == 3
    assert operator.length_hint(from_iterable(iter(())), -1) == 0
    assert operator.length_hint(from_iterable(number for number in range(3)), -1) == -1
