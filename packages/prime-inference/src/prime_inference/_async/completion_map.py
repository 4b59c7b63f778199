"""Completions of many requests at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_core.adaptive import AdaptiveLimit
from prime_core.errors import (
    APIError,
    ConfigurationError,
    PaymentRequiredError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    UnauthorizedError,
)
from prime_core.operations import Operation
from prime_core.progress import ItemProgress
from prime_core.work_streams import WorkStream
from prime_inference._async.chat import AsyncChatCompletions
from prime_inference.completion_results import CompletionResult, CompletionTotals
from prime_inference.encoding import encode_chat
from prime_inference.errors import ResultFileError
from prime_inference.models import ChatCompletion, ChatCompletionRequest, ChatRequest
from prime_inference.result_files import ResultFile, digest_of

__all__ = ["AsyncCompletionMap"]

Request: TypeAlias = ChatRequest | ChatCompletionRequest
_Numbered: TypeAlias = tuple[int, Request]
_Deliver: TypeAlias = Callable[[CompletionResult], None]

# Failures that no other request will escape.
_HOPELESS = (UnauthorizedError, PaymentRequiredError, ConfigurationError, ResultFileError)


class AsyncCompletionMap:
    """The results of many requests, as an async iterator.

    Requests are sent as results are taken. Use it as a context manager, or iterate over it with
    a loop: leaving either of them early gives up the requests under way. Made by
    `AsyncInferenceClient.map_completions`.

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
        self._limit = limit
        self._allowed = AdaptiveLimit(limit)
        self._file = None if results is None else ResultFile(results)
        self._operation = operation
        self._team_id = team_id
        self._timeout = timeout
        self._totals = CompletionTotals()
        self._started = False
        self._hopeless: Exception | None = None
        self._stream: WorkStream[_Numbered, CompletionResult] = WorkStream(
            self._work,
            self._numbered(requests),
            window=2 * limit,
            ordered=ordered,
            raise_errors=False,
            progress=ItemProgress(progress, "completions", requests),
        )

    @property
    def totals(self) -> CompletionTotals:
        """Tokens and cost of the results that were taken so far."""
        return replace(self._totals)

    @property
    def concurrency(self) -> int:
        """How many requests may be under way just now; rate limits lower it for a while."""
        return self._allowed.allowed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def __aiter__(self) -> AsyncIterator[CompletionResult]:
        try:
            while True:
                try:
                    result = await self.__anext__()
                except StopAsyncIteration:
                    return
                yield result
        finally:
            await self.aclose()

    async def __anext__(self) -> CompletionResult:
        """The next result; a request's failure is one, too.

        After a failure that no request will escape, nothing more is sent. What was under way is
        handed out, and then that failure is raised, if requests are left.

        Raises:
            UnauthorizedError: the API key is not accepted.
            PaymentRequiredError: the account that pays is empty.
            ConfigurationError: there is no API key.
            ResultFileError: the file can't be read or written, holds something else, or another
                run uses it.
        """
        if not self._started:
            if self._file is not None:
                await self._file.open()
            self._transport.want_streams(self._limit)
            self._started = True
        result = await self._stream.__anext__()
        self._totals.count(result)
        return result

    async def aclose(self) -> None:
        """Gives up the requests under way. Results that have come are in the file."""
        try:
            await self._stream.aclose()
        finally:
            if self._file is not None:
                await self._file.aclose()

    async def _numbered(
        self, requests: Iterable[Request] | AsyncIterable[Request]
    ) -> AsyncIterator[_Numbered]:
        index = 0
        async for request in _each(requests):
            if self._hopeless is not None:
                raise self._hopeless
            yield index, request
            index += 1

    async def _work(self, item: _Numbered, deliver: _Deliver) -> None:
        index, request = item
        completion: ChatCompletion | None = None
        try:
            body = self._encoded(request)
            if self._file is None:
                deliver(CompletionResult(index, request, await self._complete(body)))
                return
            digest = digest_of(body)
            found = await self._file.find(index, digest)
            if found is not None:
                deliver(CompletionResult(index, request, found, resumed=True))
                return
            completion = await self._complete(body)
            await self._file.add(index, digest, completion)
            deliver(CompletionResult(index, request, completion))
        except Exception as error:
            if isinstance(error, _HOPELESS):
                self._hopeless = error
            # What was paid for is handed out even when it could not be written.
            deliver(CompletionResult(index, request, completion, error))

    def _encoded(self, request: Request) -> bytes:
        checked = ChatCompletionRequest.model_validate(request)
        if checked.stream:
            raise ValueError("stream: results come whole; leave it out")
        if checked.usage is None:
            checked = checked.model_copy(update={"usage": {"include": True}})
        return encode_chat(checked)

    async def _complete(self, body: bytes) -> ChatCompletion:
        """Sends a request until it is not refused because there are too many."""
        loop = asyncio.get_running_loop()
        patience = self._transport.settings.queue_timeout
        refused_at: float | None = None
        call = self._completions._prepare(self._operation, body, self._team_id, self._timeout)
        call.patient = False
        while True:
            waiting = loop.time()
            began = await self._allowed.enter()
            if call.attempts:  # how often it may have been done is counted over all of them
                call.pause(loop.time() - waiting)
            try:
                if self._hopeless is not None:
                    raise self._hopeless
                completion = await self._completions._perform(call)
            except (RateLimitError, ServerError) as error:
                if not _asks_to_wait(error):
                    raise
                self._allowed.refused(began, error.retry_after)
                refused_at = refused_at or loop.time()
                if loop.time() + (error.retry_after or 0) > refused_at + patience:
                    raise
            else:
                self._allowed.passed()
                return completion
            finally:
                self._allowed.leave()


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
