"""The client of inference, composed of its parts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Iterable
from pathlib import Path

from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResourceClient
from prime_core.arguments import check_flag
from prime_inference._async.chat import AsyncChat
from prime_inference._async.completion_map import AsyncCompletionMap
from prime_inference._async.evaluations import AsyncEvaluations
from prime_inference._async.models import AsyncModels
from prime_inference.completion_results import check_limit, check_requests
from prime_inference.completion_runs import CompletionRun
from prime_inference.models import ChatCompletionRequest, ChatRequest
from prime_inference.routes import chat_operation

__all__ = ["AsyncInferenceClient"]

USER_AGENT = "prime-inference/0.1.0"


class AsyncInferenceClient(AsyncResourceClient):
    """Completes chats, streams them, and asks evaluation models.

    Use it as a context manager, or close it with `aclose`. It works on any number of event
    loops and in forked children, and pickles as its configuration, without the key.

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        client: connections to share with other clients, in place of ``api_key``.
    """

    def __init__(self, api_key: str | None = None, *, client: AsyncAPIClient | None = None) -> None:
        super().__init__(api_key, client, USER_AGENT)

    @property
    def models(self) -> AsyncModels:
        """The catalogue of models."""
        return AsyncModels(self._client)

    @property
    def chat(self) -> AsyncChat:
        """Chats: ``chat.completions.create`` completes one."""
        return AsyncChat(self._client)

    @property
    def evaluations(self) -> AsyncEvaluations:
        """Typed questions to evaluation models."""
        return AsyncEvaluations(self._client)

    def map_completions(
        self,
        requests: Iterable[ChatRequest | ChatCompletionRequest]
        | AsyncIterable[ChatRequest | ChatCompletionRequest],
        *,
        limit: int = 100,
        ordered: bool = False,
        results: str | os.PathLike[str] | None = None,
        team_id: str | None = None,
        timeout: float | None = None,
        retry_ambiguous: bool = False,
        progress: bool = False,
    ) -> AsyncCompletionMap:
        """Completes many chats at once and streams the results.

        Requests are pulled as results are taken, so that they may be endless. When the platform
        refuses some with a 429, or a 503 that names a ``Retry-After``, fewer are under way for a
        while, and those are sent again for up to the client's ``queue_timeout``. Each asks for
        its cost.

        With ``results`` a run can go on from an earlier one: a completion is on the disk before
        it is handed out or counted, and a request with the number and the contents of one that
        is there is not sent. What was under way when a run was killed has no result: it is sent
        again.

        Args:
            requests: dicts of what ``chat.completions.create`` takes, or checked requests.
            limit: the most requests under way, at least 1.
            ordered: hands the results out in the order of the requests.
            results: file of JSON lines to go on from and to add to.
            team_id: the team that pays, by default the configured one; "" is the personal
                account.
            timeout: seconds for one request, above 0; 600 by default. It is without the waits
                for the platform to take it.
            retry_ambiguous: as for ``create``: rather pay twice than have no answer.
            progress: shows a bar, if rich is installed and the output is a terminal or a
                notebook.

        Returns:
            The results as they come, failures as values, with `totals` of tokens and cost.

        Raises:
            ConfigurationError: there is no API key.
            ValueError: a wrong argument.
        """
        run = CompletionRun(
            self._client,
            check_requests(requests),
            limit=check_limit(limit),
            ordered=check_flag("ordered", ordered),
            results=None if results is None else Path(results),
            operation=chat_operation(retry_ambiguous=retry_ambiguous),
            team_id=team_id,
            timeout=timeout,
            progress=check_flag("progress", progress),
        )
        return AsyncCompletionMap(run)
