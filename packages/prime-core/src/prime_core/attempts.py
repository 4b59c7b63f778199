"""One attempt on the wire: gates, connection, answer; every failure becomes a `Failure`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TypeVar, cast

import aiohttp

from prime_core.calls import Call
from prime_core.deadlines import move_deadline, timeout_at
from prime_core.errors import APIError, APIResponseError
from prime_core.failures import (
    closed_failure,
    down_failure,
    failure_of_answer,
    failure_of_transport,
    page_failure,
    partial_failure,
    pool_failure,
    queue_failure,
    total_timeout,
    without_key,
)
from prime_core.outcomes import Failure, HeldError, Outcome, error_in_answer, is_refusal
from prime_core.redirects import redirect_failure, redirected
from prime_core.sessions import LoopState, proxy_for
from prime_core.streams import OpenStream, body_size
from prime_core.uploads import Upload

__all__ = ["attempt"]

logger = logging.getLogger("prime_core")

T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
CONNECT_LEAD = 0.1
MAX_REDIRECTS = 5


async def attempt(call: Call[T], state: LoopState) -> T | Failure:
    """Sends a call once, past all gates, and reads its answer.

    Returns:
        What the call's reader made of a success, or the failure. Nothing is raised for
        what the network or the platform does, so that no traceback holds the key.
    """
    operation = call.operation
    loop = asyncio.get_running_loop()
    scope = state.scope(operation.scope)
    if not scope.free and not await _pass_scope(call, scope.enter, loop):
        return call.last or queue_failure(call)
    if call.attempts == 0:
        call.start(loop.time())
    elif call.recover is not None and call.last is not None:
        try:
            made = await call.recover()
        except (APIError, asyncio.TimeoutError):
            return replace(call.last, outcome=Outcome.FINAL)
        if made is not None:
            return made
    pool = state.control if operation.pool == "control" else state.stream
    refusal = await _acquire(call, state, pool, loop)
    if refusal is not None:
        return refusal
    if state.session.closed:  # meanwhile; another attempt opens a new one
        pool.release()
        return closed_failure()
    began = time.monotonic()
    before = call.unresolved
    call.attempts += 1
    call.unresolved = True  # until something better is known, whatever interrupts us
    call.in_flight = True
    try:
        result = await _exchange(call, state, pool.release, loop)
    except BaseException:
        pool.release()
        raise
    finally:
        call.in_flight = False
    if not isinstance(result, OpenStream):
        pool.release()
    health = state.host(call.target.origin)
    if isinstance(result, Failure):
        call.last = result
        if result.outcome is Outcome.AMBIGUOUS:
            call.ambiguous += 1
        elif result.outcome is Outcome.FINAL and result.error.status_code is not None:
            settled = operation.safety == "safe" or is_refusal(result.error.status_code)
            # A refusal may be one for what an attempt before has made.
            call.unresolved = not settled or (before and call.recover is not None)
        else:
            # What a gateway says in place of a create that it has passed on settles nothing.
            doubtful = call.recover is not None and result.error.status_code == 503
            call.unresolved = before or doubtful
        if result.unavailable:
            health.failed()
        elif result.error.status_code is not None:
            health.answered(began)
        status: object = result.error.status_code or type(result.error).__name__
    else:
        call.unresolved = False
        health.answered(began)
        status = "ok"
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug(
            "%s %s -> %s in %.0f ms (request id %s)",
            operation.method,
            operation.path,
            status,
            (time.monotonic() - began) * 1000,
            call.request_id,
        )
    return result


async def _pass_scope(
    call: Call[T],
    enter: Callable[[float], Awaitable[bool]],
    loop: asyncio.AbstractEventLoop,
) -> bool:
    """Waits for the rate limit, on a clock of its own: the call's deadline moves on."""
    before = loop.time()
    passed = await enter(call.queue_timeout)
    waited = loop.time() - before
    if call.attempts:
        call.pause(waited)
        call.throttled += waited
    return passed


async def _acquire(
    call: Call[T], state: LoopState, pool: asyncio.Semaphore, loop: asyncio.AbstractEventLoop
) -> Failure | None:
    """Takes a place in the pool while the host is up; a failure when time runs out first."""
    health = state.host(call.target.origin)
    while True:
        asked_to_probe = False
        if health.down:
            if not await health.wait(call.deadline):
                return call.last or down_failure(call)
            asked_to_probe = True
        if pool.locked():
            try:
                async with timeout_at(call.deadline):
                    await pool.acquire()
            except asyncio.TimeoutError:
                return call.last or pool_failure(call)
        else:
            await pool.acquire()
        if loop.time() >= call.deadline:
            pool.release()
            return call.last or Failure(Outcome.NOT_SENT, total_timeout(call, sent=False))
        if asked_to_probe or not health.down:
            return None
        pool.release()


async def _exchange(
    call: Call[T],
    state: LoopState,
    release: Callable[[], None],
    loop: asyncio.AbstractEventLoop,
) -> T | Failure:
    """Sends the request and reads its answer, or leaves it open together with its place."""
    reading = False
    try:
        if call.idle is None and not isinstance(call.body, Upload):
            response = await _send(call, state, call.body, loop)
        else:
            response = await _send_watched(call, state, loop)
        if isinstance(response, Failure):
            return response
        call.inference_id = response.headers.get("X-Inference-Id")
        if not 200 <= response.status < 300:
            try:
                return await failure_of_answer(call, response)
            finally:
                response.close()
        is_page = call.idle is not None and response.content_type == "text/html"
        if is_page and not call.any_page:
            response.close()
            return page_failure(call)  # of something between us and the platform
        whole = 206 if call.ranged else 200
        if call.idle is not None and call.operation.method == "GET" and response.status != whole:
            response.close()
            return partial_failure(call, response.status)
        if call.read is None:
            return cast(T, OpenStream(call, response, release))
        if call.idle is not None:
            call.answer_size = body_size(response)
            call.answer_headers = response.headers
        reading = True
        async with response:
            return await call.read(response.status, response.content)
    except APIResponseError as error:
        # Without its traceback: the frames there hold the key.
        return Failure(Outcome.AMBIGUOUS, error.with_traceback(None))
    except HeldError as error:
        text = without_key(call, error.data).decode("utf-8", "replace")
        return Failure(Outcome.FINAL, error_in_answer(text, "The answer holds an error"))
    except Exception as error:
        if reading and not isinstance(error, asyncio.TimeoutError):
            call.progress(loop.time())  # the answer had begun to arrive
        return failure_of_transport(call, error, reading=reading)


async def _send(
    call: Call[T],
    state: LoopState,
    data: bytes | AsyncIterator[bytes] | None,
    loop: asyncio.AbstractEventLoop,
) -> aiohttp.ClientResponse | Failure:
    """Sends the request, follows redirects, and returns an answer whose head has arrived."""
    url, headers, proxy = call.url, call.headers, call.target.proxy
    for _ in range(MAX_REDIRECTS + 1):
        response = await state.session.request(
            call.operation.method,
            url,
            data=data,
            headers=headers,
            timeout=_timeout(call, loop.time()),
            allow_redirects=False,
            proxy=proxy,
        )
        status = response.status
        if status not in (301, 302, 303, 307, 308) or "Location" not in response.headers:
            return response
        async with response:
            target = redirected(call, url, response.headers["Location"], status)
        if isinstance(target, Failure):
            return target
        if target.origin() != url.origin():
            headers = {"User-Agent": headers["User-Agent"]}
            proxy = proxy_for(str(target))
        url = target
    return redirect_failure(status, "The platform redirects in a circle; check the base URL.")


async def _send_watched(
    call: Call[T], state: LoopState, loop: asyncio.AbstractEventLoop
) -> aiohttp.ClientResponse | Failure:
    """Sends the request as long as it moves; aiohttp itself watches over the answer's body."""
    async with timeout_at(call.deadline) as limit:

        def sending() -> None:
            call.progress(loop.time())
            move_deadline(limit, call.deadline)

        def reading() -> None:
            move_deadline(limit, None if call.timeout is None else call.end)

        if not isinstance(call.body, Upload):
            return await _send(call, state, call.body, loop)
        chunks = call.body.chunks(sending, reading)
        try:
            return await _send(call, state, chunks, loop)
        finally:
            # When aiohttp still draws from it, it has been told to stop, which ends it too.
            with contextlib.suppress(RuntimeError):
                await chunks.aclose()


def _timeout(call: Call[T], now: float) -> aiohttp.ClientTimeout:
    remaining = max(call.deadline - now, 0.001)  # 0 means none
    if call.idle is None:
        # Behind the limit of connecting, so that what was surely not sent is told apart.
        total: float | None = remaining + CONNECT_LEAD
    else:
        total = None if call.timeout is None else max(call.end - now, 0.001) + CONNECT_LEAD
    return aiohttp.ClientTimeout(
        total=total,
        connect=min(CONNECT_TIMEOUT, remaining),
        sock_read=call.idle,
        ceil_threshold=1e9,  # a deadline is not rounded up to whole seconds
    )
