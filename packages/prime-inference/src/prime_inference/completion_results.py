"""What comes of many requests for completions."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from pydantic import BaseModel

from prime_core.sync import Pulled
from prime_inference.models import ChatCompletion, ChatCompletionRequest, ChatRequest

__all__ = ["CompletionResult", "CompletionTotals", "check_limit", "check_requests"]

R = TypeVar("R")


@dataclass(frozen=True)
class CompletionResult:
    """The completion of one request, or its failure.

    Attributes:
        index: number of the request, from 0.
        request: the request as it was given.
        completion: what the model said; None after a failure, unless that is one of writing it.
        error: what was raised, or None.
        resumed: whether it was in the file of results before; then nothing was sent.
    """

    index: int
    request: ChatRequest | ChatCompletionRequest
    completion: ChatCompletion | None = None
    error: Exception | None = None
    resumed: bool = False

    @property
    def ok(self) -> bool:
        """Whether there was no error."""
        return self.error is None


@dataclass
class CompletionTotals:
    """Sums over the results so far, those that were resumed included.

    Attributes:
        completed: completions.
        failed: failures.
        resumed: completions that were in the file of results before.
        prompt_tokens: tokens of the requests.
        completion_tokens: tokens of the answers.
        cost: what the platform said it charged, in USD.
        resumed_cost: the part of ``cost`` that earlier runs paid.
        without_cost: completions of which the platform did not say what they cost.
    """

    completed: int = 0
    failed: int = 0
    resumed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)
    resumed_cost: Decimal = Decimal(0)
    without_cost: int = 0

    def count(self, result: CompletionResult) -> None:
        """Adds a result.

        Args:
            result: what came of a request.
        """
        self.completed += result.ok
        self.failed += not result.ok
        self.resumed += result.resumed
        if result.completion is None:
            return
        usage = result.completion.usage
        if usage is None or usage.cost is None:
            self.without_cost += 1
        else:
            cost = Decimal(str(usage.cost))  # the digits that were sent, not the float's own
            self.cost += cost
            if result.resumed:
                self.resumed_cost += cost
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens or usage.input_tokens or 0
            self.completion_tokens += usage.completion_tokens or usage.output_tokens or 0


def check_limit(limit: int) -> int:
    """A number of requests that can be under way."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit is a whole number of at least 1, not {limit!r}")
    return limit


def check_requests(requests: R) -> R:
    """Several requests; one alone, whose keys would be taken for them, is refused."""
    plain: object = requests.source if isinstance(requests, Pulled) else requests
    if isinstance(plain, str | bytes | Mapping | BaseModel) or not isinstance(
        plain, Iterable | AsyncIterable
    ):
        kind = type(plain).__name__
        raise ValueError(f"requests are several, such as a list of dicts, not a {kind}")
    return requests
