"""The reaper: clean-up that survives what happens to its caller."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from prime_core.errors import (
    APIConnectionError,
    APIResponseError,
    NotFoundError,
    RateLimitError,
    ServerError,
)
from prime_core.reaper import Reaper
from prime_core.sync import loop_thread
from prime_core.termination import SIGNALS

Undo = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture
def reaper(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reaper]:
    monkeypatch.setattr("prime_core.reaper.FIRST_PAUSE", 0.01)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield Reaper()
    for number, handler in handlers.items():  # `finish` ignores them from then on
        signal.signal(number, handler)


class Work:
    """Something to undo, with failures to come first."""

    def __init__(self, *failures: Exception, seconds: float = 0.0) -> None:
        self.failures = list(failures)
        self.seconds = seconds
        self.started: list[threading.Thread] = []
        self.ended = 0

    async def undo(self) -> None:
        self.started.append(threading.current_thread())
        await asyncio.sleep(self.seconds)
        if self.failures:
            raise self.failures.pop(0)
        self.ended += 1


def test_what_is_called_in_is_undone_on_the_loop_thread(reaper: Reaper) -> None:
    work = Work()
    obligation = reaper.owe("me", "A thing", work.undo)
    assert obligation.owed
    obligation.call_in().result(5)
    assert work.started == [loop_thread().thread]
    assert work.ended == 1
    assert not obligation.owed


def test_what_is_settled_is_not_undone(reaper: Reaper) -> None:
    work = Work()
    obligation = reaper.owe("me", "A thing", work.undo)
    obligation.settle()
    obligation.settle()
    reaper.finish()
    assert not obligation.owed
    assert work.started == []


def test_it_is_undone_once_however_often_it_is_called_in(reaper: Reaper) -> None:
    work = Work(seconds=0.05)
    obligation = reaper.owe("me", "A thing", work.undo)
    futures = {obligation.call_in() for _ in range(5)}
    assert len(futures) == 1
    futures.pop().result(5)
    obligation.call_in().result(5)
    assert len(work.started) == 1


@pytest.mark.parametrize(
    "failure",
    [
        APIConnectionError("down"),
        APIResponseError("garbled"),
        ServerError("HTTP 500"),
        RateLimitError("HTTP 429"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_it_is_undone_again_while_the_platform_fails(reaper: Reaper, failure: Exception) -> None:
    work = Work(failure, failure, failure)
    reaper.owe("me", "A thing", work.undo).call_in().result(5)
    assert len(work.started) == 4
    assert work.ended == 1


def test_what_cannot_be_undone_is_said_once_and_given_up(
    reaper: Reaper, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(NotFoundError("HTTP 404: gone"))
    obligation = reaper.owe("me", "Sandbox 'a'", work.undo)
    with pytest.raises(NotFoundError):
        obligation.call_in().result(5)
    assert not obligation.owed
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "Sandbox 'a' could not be undone" in record.getMessage()
    assert "HTTP 404: gone" in record.getMessage()


def test_undoing_is_bounded_in_time(
    reaper: Reaper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("prime_core.reaper.UNDO_TIMEOUT", 0.2)
    hanging = reaper.owe("me", "A hanging thing", Work(seconds=60).undo).call_in()
    failing = reaper.owe("me", "A failing thing", Work(*[ServerError("x")] * 99).undo).call_in()
    started = time.monotonic()
    for future in (hanging, failing):
        with pytest.raises((TimeoutError, asyncio.TimeoutError, ServerError)):
            future.result(5)
    assert time.monotonic() - started < 2
    assert len(caplog.records) == 2
    assert reaper._owed == {}


async def test_draining_waits_for_an_owners_clean_up_alone(reaper: Reaper) -> None:
    mine, other, later = Work(seconds=0.1), Work(seconds=5), Work()
    reaper.owe("me", "A thing", mine.undo).call_in()
    other_future = reaper.owe("other", "A thing", other.undo).call_in()
    kept = reaper.owe("me", "A thing", later.undo)
    started = time.monotonic()
    await reaper.drain("me")
    assert 0.05 < time.monotonic() - started < 2
    assert mine.ended == 1
    assert later.started == [], "what nobody has called in is not undone"
    kept.settle()
    other_future.cancel()


async def test_draining_is_bounded_in_time(reaper: Reaper) -> None:
    future = reaper.owe("me", "A thing", Work(seconds=5).undo).call_in()
    started = time.monotonic()
    await reaper.drain("me", patience=0.1)
    assert time.monotonic() - started < 1
    assert not future.done()
    future.cancel()


async def test_draining_that_is_cancelled_leaves_the_clean_up_running(reaper: Reaper) -> None:
    work = Work(seconds=0.1)
    future = reaper.owe("me", "A thing", work.undo).call_in()
    drain = asyncio.ensure_future(reaper.drain("me"))
    await asyncio.sleep(0.01)
    drain.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drain
    await asyncio.to_thread(future.result, 5)
    assert work.ended == 1


async def test_draining_what_fails_adds_no_noise_to_the_reapers_own_word(
    reaper: Reaper, caplog: pytest.LogCaptureFixture
) -> None:
    reaper.owe("me", "A thing", Work(NotFoundError("x"), seconds=0.05).undo).call_in()
    await reaper.drain("me")
    gc.collect()
    await asyncio.sleep(0.01)
    assert [record.name for record in caplog.records] == ["prime_core"]


def test_draining_is_safe_while_the_loop_thread_finishes_work(reaper: Reaper) -> None:
    async def main() -> None:
        for _ in range(40):
            for _ in range(50):
                reaper.owe("me", "A thing", Work().undo).call_in()
            await reaper.drain("me")

    asyncio.run(main())
    assert reaper._owed == {}


async def test_work_handed_to_the_reaper_survives_its_callers_cancellation(
    reaper: Reaper,
) -> None:
    work = Work(seconds=0.1)
    caller = asyncio.ensure_future(reaper.run(work.undo()))
    await asyncio.sleep(0.02)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.sleep(0.2)
    assert work.ended == 1


def test_finishing_undoes_all_that_is_owed_and_takes_nothing_new(reaper: Reaper) -> None:
    works = [Work(seconds=0.05) for _ in range(20)]
    for work in works:
        reaper.owe("me", "A thing", work.undo)
    started = time.monotonic()
    reaper.finish()
    assert time.monotonic() - started < 2
    assert [work.ended for work in works] == [1] * 20
    with pytest.raises(RuntimeError, match="exits"):
        reaper.owe("me", "A thing", Work().undo)


def test_finishing_is_bounded_in_time_and_says_what_it_leaves(
    reaper: Reaper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("prime_core.reaper.EXIT_PATIENCE", 0.2)
    obligation = reaper.owe("me", "Sandbox 'a'", Work(seconds=60).undo)
    started = time.monotonic()
    reaper.finish()
    assert time.monotonic() - started < 2
    assert "Sandbox 'a' was left behind at exit" in caplog.text
    obligation.call_in().cancel()


def test_a_forked_childs_reaper_owes_nothing(reaper: Reaper) -> None:
    work = Work()
    reaper.owe("me", "A thing", work.undo)
    reaper.forget()
    reaper.finish()
    assert work.started == []
