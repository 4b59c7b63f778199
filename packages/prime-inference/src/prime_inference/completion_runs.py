"""The work behind `AsyncCompletionMap`, which goes on while nobody looks at that."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from prime_core._async.api_client import AsyncAPIClient
from prime_core.adaptive import AdaptiveLimit
from prime_core.arguments import build
from prime_core.errors import (
    APIError,
    ConfigurationError,
    PaymentRequiredError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamStateError,
    UnauthorizedError,
)
from prime_core.operations import Operation
from prime_core.progress import ItemProgress
from prime_core.sessions import LoopState
from prime_core.work_streams import WorkStream
from prime_inference._async.chat import AsyncChatCompletions
from prime_inference.completion_results import CompletionResult
from prime_inference.encoding import encode_chat
from prime_inference.errors import ResultFileError
from prime_inference.models import ChatCompletion, ChatCompletionRequest, ChatRequest
from prime_inference.result_files import ResultFile, digest_of

__all__ = ["CompletionRun", "Request"]

Request: TypeAlias = ChatRequest | ChatCompletionRequest
_Deliver: TypeAlias = Callable[[CompletionResult], None]

# Failures that no other request will escape.
_HOPELESS = (
    UnauthorizedError,
    PaymentRequiredError,
    ConfigurationError,
    ResultFileError,
    StreamStateError,
)


@dataclass
class _Item:
    """A request as it was when it was pulled: its caller may use the same dict for the next."""

    index: int
    request: Request
    body: bytes = field(default=b"", repr=False)
    error: Exception | None = None


class CompletionRun:
    """Sends requests while results are taken. Its tasks hold it, so that its handle can go.

    Args:
        client: the connections.
        requests: what to complete.
        limit: the most requests under way.
        ordered: whether results come in the order of the requests.
        results: file to go on from, or None.
        operation: the row of the route.
        team_id: the team that pays, or None.
        timeout: seconds for a request, or None.
        progress: whether to show a bar.
    """

    def __init__(
        self,
        client: AsyncAPIClient,
        requests: Iterable[Request] | AsyncIterable[Request],
        *,
        limit: int,
        ordered: bool,
        results: Path | None,
        operation: Operation,
        team_id: str | None,
        timeout: float | None,
        progress: bool,
    ) -> None:
        self._transport = client._transport
        self._completions = AsyncChatCompletions(client)
        self._completions._prepare(operation, b"{}", team_id, timeout)  # refuses what is wrong
        self._limit = limit
        self.allowed = AdaptiveLimit(limit)
        self._file = None if results is None else ResultFile(results)
        self._operation = operation
        self._team_id = client.config.team_id if team_id is None else team_id
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state: LoopState | None = None
        self._process = os.getpid()
        self._hopeless: Exception | None = None
        self._stream: WorkStream[_Item, CompletionResult] = WorkStream(
            self._work,
            self._items(requests),
            window=2 * limit,
            ordered=ordered,
            raise_errors=False,
            progress=ItemProgress(progress, "completions", requests),
        )

    async def next(self) -> CompletionResult:
        """The next result; see `AsyncCompletionMap`."""
        if self._loop is None and not self._stream.stopped:
            if self._file is not None:
                await self._file.open()
            self._loop = asyncio.get_running_loop()
            self._state = self._transport.want_streams(self._limit)
        return await self._stream.__anext__()

    async def aclose(self) -> None:
        """Gives up the requests under way. Results that have come are in the file."""
        here = self._stream.here
        try:
            await self._stream.aclose()
        finally:
            if self._file is not None and here:
                await self._file.aclose()

    def give_up(self) -> None:
        """Does so for a handle that is gone, from any thread, without waiting for it."""
        if self._loop is None or self._process != os.getpid():
            return
        try:
            self._loop.call_soon_threadsafe(self._stop)
        except RuntimeError:  # its loop is closed, and has ended its tasks
            if self._file is not None:
                self._file.finish()

    @property
    def under_way(self) -> bool:
        """Whether there is something to give up."""
        return self._loop is not None and not self._stream.stopped and not self._stream.ended

    def _stop(self) -> None:
        self._stream.stop()
        if self._file is not None:
            self._file.close_soon()

    async def _items(
        self, requests: Iterable[Request] | AsyncIterable[Request]
    ) -> AsyncIterator[_Item]:
        index = 0
        async for request in _each(requests):
            if self._hopeless is not None:
                raise self._hopeless
            yield _encoded(index, request)
            index += 1

    async def _work(self, item: _Item, deliver: _Deliver) -> None:
        completion: ChatCompletion | None = None
        resumed = False
        error = item.error
        try:
            if error is None and self._file is None:
                completion = await self._complete(item.body)
            elif error is None and self._file is not None:
                digest = digest_of(item.body, self._team_id)
                completion = await self._file.find(item.index, digest)
                resumed = completion is not None
                if completion is None:
                    completion = await self._complete(item.body)
                    await self._file.add(item.index, digest, completion)
        except Exception as raised:
            if isinstance(raised, _HOPELESS):
                self._hopeless = raised
            # What was paid for is handed out even when it could not be written.
            error = raised
        deliver(CompletionResult(item.index, item.request, completion, error, resumed))

    async def _complete(self, body: bytes) -> ChatCompletion:
        """Sends a request until it is not refused because there are too many."""
        loop = asyncio.get_running_loop()
        patience = self._transport.settings.queue_timeout
        refused_at: float | None = None
        call = self._completions._prepare(self._operation, body, self._team_id, self._timeout)
        call.patient = False
        while True:
            waiting = loop.time()
            began = await self.allowed.enter()
            if call.attempts:  # how often it may have been done is counted over all of them
                call.pause(loop.time() - waiting)
            try:
                self._check_hope()
                completion = await self._completions._perform(call)
            except (RateLimitError, ServerError) as error:
                if not _asks_to_wait(error):
                    raise
                self.allowed.refused(began, error.retry_after)
                refused_at = refused_at or loop.time()
                if loop.time() + (error.retry_after or 0) > refused_at + patience:
                    raise
            else:
                self.allowed.passed()
                return completion
            finally:
                self.allowed.leave()

    def _check_hope(self) -> None:
        if self._hopeless is not None:
            raise self._hopeless
        if self._state is not None and self._state.session.closed:
            raise StreamStateError("The client was closed before this was sent.")


def _encoded(index: int, request: Request) -> _Item:
    try:
        if isinstance(request, ChatCompletionRequest):
            checked = request
        else:
            checked = build(ChatCompletionRequest, request)
        if checked.stream:
            raise ValueError("stream: results come whole; leave it out")
        if checked.usage is None:
            checked = checked.model_copy(update={"usage": {"include": True}})
        return _Item(index, request, encode_chat(checked))
    except Exception as error:
        return _Item(index, request, error=error)


def _asks_to_wait(error: APIError) -> bool:
    """Whether a refusal is one that is waited for, as ``create`` does."""
    if isinstance(error, ServerError):
        return error.status_code == 503 and error.retry_after is not None
    return not isinstance(error, QuotaExceededError)


async def _each(requests: Iterable[Request] | AsyncIterable[Request]) -> AsyncIterator[Request]:
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request
