"""One logical call: what is sent, where to, and what has come of it so far."""

from __future__ import annotations

import itertools
import math
import os
import time
import urllib.parse
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from multidict import CIMultiDict
from yarl import URL

from prime_core.operations import Operation
from prime_core.outcomes import Failure
from prime_core.sessions import proxy_for
from prime_core.uploads import Upload

__all__ = ["Body", "Call", "Headers", "Reader", "Target", "new_request_id"]

T = TypeVar("T")


class Body(Protocol):
    """The body of an answer, to be read once: whole, or in chunks as they arrive."""

    async def read(self) -> bytes: ...

    def iter_any(self) -> AsyncIterator[bytes]: ...


# What makes a result of a success: status and body. Raises APIResponseError for what it
# can't use.
Reader = Callable[[int, Body], Awaitable[T]]


class Headers(CIMultiDict[str]):
    """Headers whose repr holds names only: tools print the variables of a traceback's frames."""

    def __repr__(self) -> str:
        return f"Headers({', '.join(self)})"


@dataclass(frozen=True)
class Target:
    """A host to call, with the headers that only this host may see.

    Made once per client (or per gateway token), not per call.
    """

    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    host: str
    origin: str

    @classmethod
    def of(cls, base_url: str, headers: Mapping[str, str]) -> Target:
        parts = urllib.parse.urlsplit(base_url)
        origin = f"{parts.scheme}://{parts.netloc}"
        return cls(base_url, headers, parts.netloc, origin)

    @cached_property
    def proxy(self) -> str | None:
        """The proxy that the environment names for this host.

        Looked up when first needed: that costs as much as half a call, and a token that comes
        with a create may never be used.
        """
        return proxy_for(self.base_url)


@dataclass(slots=True)  # a dict less for each call in flight
class Call(Generic[T]):
    """One logical call: what is sent, and what has come of it so far.

    Attributes:
        read: makes the result of a success; None for one that stays open, as an `OpenStream`.
        timeout: seconds for all of it; None for a transfer that may take as long as it moves.
        idle: seconds without progress after which a transfer is given up.
        max_attempts: most attempts, over the usual ones; waits that are asked for don't count.
        patient: whether it waits when it is refused because of a rate limit.
        recover: looks before each further attempt for what the ones before have made all the
            same. It is not sent again when that can't be told, which an APIError says.
        inference_id: what the last answer was called by the service that made it.
        answer_size: of a transfer, the bytes of the answer's body, where the answer says so.
        answer_headers: of a transfer, the answer's headers.
        ranged: whether a range of a document is asked for, so that 206 is the answer.
        any_page: whether an HTML page can be the answer, as of a store that holds some.
    """

    operation: Operation
    target: Target
    url: URL
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | Upload | None = field(repr=False)
    read: Reader[T] | None
    timeout: float | None
    queue_timeout: float
    request_id: str
    idle: float | None = None
    max_attempts: int | None = None
    answer_size: int | None = None
    answer_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ranged: bool = False
    any_page: bool = False
    patient: bool = True
    recover: Callable[[], Awaitable[T | None]] | None = None
    inference_id: str | None = None
    started: float = 0.0
    end: float = math.inf  # loop time of ``timeout``; moved on by waits that don't count
    deadline: float = 0.0  # loop time; before ``end`` where nothing has moved for a while
    attempts: int = 0
    throttled: float = 0.0  # seconds waited because the platform asked to
    ambiguous: int = 0  # attempts that may have been processed without an answer
    in_flight: bool = False  # whether an attempt is on the wire
    unresolved: bool = False  # whether the platform may have acted without our knowing
    last: Failure | None = None

    def start(self, now: float) -> None:
        """Opens the deadline, at the loop time ``now``."""
        self.started = time.monotonic()
        if self.timeout is not None:
            self.end = now + self.timeout
        self.progress(now)

    def progress(self, now: float) -> None:
        """Notes that something has moved: an idle limit begins again."""
        self.deadline = self.end if self.idle is None else min(self.end, now + self.idle)

    def pause(self, seconds: float) -> None:
        """Moves the deadline on by a wait that does not count."""
        self.end += seconds
        self.deadline += seconds

    @property
    def spent(self) -> bool:
        """Whether its body has begun to be sent and can't be sent again."""
        return isinstance(self.body, Upload) and self.body.spent


class _Prefix:
    """The process's part of request ids; a forked child makes its own."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.text = uuid.uuid4().hex[:20]
        self.counter = itertools.count(1)


_prefix = _Prefix()


def new_request_id() -> str:
    """An id unlike any other; a counter costs a fraction of a UUID."""
    return f"{_prefix.text}-{next(_prefix.counter):x}"
