"""Completions of many requests at once."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from dataclasses import replace
from types import TracebackType

from typing_extensions import Self

from prime_inference.completion_results import CompletionResult, CompletionTotals
from prime_inference.completion_runs import CompletionRun

__all__ = ["AsyncCompletionMap"]


class AsyncCompletionMap:
    """The results of many requests, as an async iterator.

    Requests are sent as results are taken. Use it as a context manager, or iterate over it with
    a loop: leaving either of them early gives up the requests under way. Made by
    `AsyncInferenceClient.map_completions`.

    Args:
        sender: what sends the requests.
    """

    def __init__(self, sender: CompletionRun) -> None:
        self._sender = sender
        self._totals = CompletionTotals()

    @property
    def totals(self) -> CompletionTotals:
        """Tokens and cost of the results that were taken so far."""
        return replace(self._totals)

    @property
    def concurrency(self) -> int:
        """How many requests may be under way just now; rate limits lower it for a while."""
        return self._sender.allowed.allowed

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
            ResultFileError: the file can't be read or written, holds something else, is used by
                another run, or was changed by somebody else meanwhile.
            StreamStateError: it was left before its end, its client was closed, or it was begun
                before this process was forked off.
        """
        result = await self._sender.next()
        self._totals.count(result)
        return result

    async def aclose(self) -> None:
        """Gives up the requests under way. Results that have come are in the file."""
        await self._sender.aclose()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("the results of a map can't be pickled or copied: requests are under way")

    def __del__(self) -> None:
        sender: CompletionRun | None = getattr(self, "_sender", None)
        if sender is not None and sender.under_way:
            warnings.warn(
                "the results of a map were dropped before their end; close it",
                ResourceWarning,
                stacklevel=2,
            )
            sender.give_up()
