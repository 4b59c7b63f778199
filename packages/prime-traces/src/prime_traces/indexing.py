"""Waiting for the index of a trace, which is built shortly after its upload."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from prime_core.errors import APIConnectionError, ServerError
from prime_core.polling import PollSchedule, PollTimeout
from prime_traces.errors import RetryableAPIError, TraceNotIndexedError
from prime_traces.models import TraceNodePage

__all__ = ["IndexSchedule", "is_transient", "read_indexed"]

T = TypeVar("T")

# Asks by trace id for a page of messages: any page will do.
IndexSchedule: TypeAlias = PollSchedule[str, TraceNodePage]


def is_transient(error: Exception) -> bool:
    """Whether a failure to read an index may pass by itself while somebody waits."""
    passing = (TraceNotIndexedError, RetryableAPIError, ServerError, APIConnectionError)
    return isinstance(error, passing)


async def read_indexed(
    read: Callable[[], Awaitable[T]],
    trace_id: str,
    schedule: IndexSchedule,
    seconds: float | None,
) -> T:
    """What a trace's index says, once it is built.

    Args:
        read: asks the index.
        trace_id: the trace.
        schedule: waits for it, together with others that wait.
        seconds: how long; None does not wait.

    Raises:
        TraceNotIndexedError: the index is still being built when the time is over.
    """
    if seconds is None:
        return await read()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return await read()
        except TraceNotIndexedError as error:
            failure: Exception = error
        if loop.time() >= deadline:  # it is rebuilt all the time
            raise failure
        try:
            await schedule.wait(trace_id, lambda page: True, deadline)
        except PollTimeout as late:
            raise (late.last_error or failure) from None
