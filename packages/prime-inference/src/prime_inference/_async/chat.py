"""Completions of chats."""

from __future__ import annotations

from typing import Literal, overload

from typing_extensions import Unpack

from prime_core._async.resource import AsyncResource
from prime_core.arguments import build, check_flag, check_seconds
from prime_core.calls import Call
from prime_core.decoding import model_reader
from prime_core.handover import when_received
from prime_core.operations import Operation
from prime_core.streams import OpenStream
from prime_inference._async.chat_streams import AsyncChatCompletionStream
from prime_inference.encoding import PATIENCE, encode_chat
from prime_inference.errors import naming_models
from prime_inference.models import (
    ChatCompletion,
    ChatCompletionRequest,
    ChatRequest,
)
from prime_inference.routes import chat_operation

__all__ = ["AsyncChat", "AsyncChatCompletions"]


class AsyncChatCompletions(AsyncResource):
    """Completes chats, whole or as a stream. Made by `AsyncInferenceClient.chat`.

    Follows the documented page "api-reference/inference-chat-completions".

    Args:
        client: the connections.
    """

    @overload
    async def create(
        self,
        *,
        stream: Literal[False] | None = ...,
        team_id: str | None = ...,
        timeout: float | None = ...,
        idle_timeout: float | None = ...,
        retry_ambiguous: bool = ...,
        **request: Unpack[ChatRequest],
    ) -> ChatCompletion: ...

    @overload
    async def create(
        self,
        *,
        stream: Literal[True],
        team_id: str | None = ...,
        timeout: float | None = ...,
        idle_timeout: float | None = ...,
        retry_ambiguous: bool = ...,
        **request: Unpack[ChatRequest],
    ) -> AsyncChatCompletionStream: ...

    @overload
    async def create(
        self,
        *,
        stream: bool,
        team_id: str | None = ...,
        timeout: float | None = ...,
        idle_timeout: float | None = ...,
        retry_ambiguous: bool = ...,
        **request: Unpack[ChatRequest],
    ) -> ChatCompletion | AsyncChatCompletionStream: ...

    async def create(
        self,
        *,
        stream: bool | None = None,
        team_id: str | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        retry_ambiguous: bool = False,
        **request: Unpack[ChatRequest],
    ) -> ChatCompletion | AsyncChatCompletionStream:
        """Completes a chat.

        It is paid for, so that it is not sent again when it may have been processed without an
        answer; when it surely was not, or was refused by a 429 or by a 503 that names a
        ``Retry-After``, it is.

        Args:
            stream: return the answer while it is made.
            team_id: the team that pays, by default the configured one; "" is the personal
                account.
            timeout: seconds for the whole call, above 0: by default 600, and without a limit
                for a stream. It is without the waits that a 429, or a 503 with ``Retry-After``,
                asks for; the client's ``max_throttle_wait`` bounds those.
            idle_timeout: seconds without a byte after which a stream is given up, above 0; 600
                by default. Comments that keep it alive count as bytes.
            retry_ambiguous: send it again, up to twice, even when it may have been processed
                and will be paid for each time; never once a stream has begun.
            request: ``model``, ``messages`` and the rest of `ChatCompletionRequest`, by name.

        Returns:
            The completion, or with ``stream`` an iterator over its chunks.

        Raises:
            ModelNotFoundError: there is no such model.
            PaymentRequiredError: the account that pays is empty.
            ValueError: a wrong parameter, named by its place such as ``messages.0.role``;
                nothing was sent. A value that is not even of its type may be a `TypeError`.
            APIError: any other failure.
        """
        checked = build(ChatCompletionRequest, request)
        if stream is not None and check_flag("stream", stream):
            checked.stream = True
            if idle_timeout is not None:
                check_seconds("idle_timeout", idle_timeout)
        elif idle_timeout is not None:
            raise ValueError("idle_timeout is for streams; pass timeout")
        body = encode_chat(checked)
        operation = chat_operation(retry_ambiguous=retry_ambiguous)
        if stream:
            opening: Call[OpenStream] = self._transport.prepare(
                operation,
                None,
                body=body,
                team=team_id,
                timeout=timeout,
                idle=PATIENCE if idle_timeout is None else idle_timeout,
                headers={"Accept": "text/event-stream, application/json"},
            )
            with naming_models():
                opened = await self._transport.perform(opening)
            when_received(_keep, opened.close_from_anywhere)
            return AsyncChatCompletionStream(opened)
        return await self._perform(self._prepare(operation, body, team_id, timeout))

    def _prepare(
        self, operation: Operation, body: bytes, team_id: str | None, timeout: float | None
    ) -> Call[ChatCompletion]:
        """Puts a request that is encoded together without sending it."""
        return self._transport.prepare(
            operation,
            model_reader(ChatCompletion),
            body=body,
            team=team_id,
            timeout=PATIENCE if timeout is None else timeout,
        )

    async def _perform(self, call: Call[ChatCompletion]) -> ChatCompletion:
        """Sends a prepared request."""
        with naming_models():
            completion = await self._transport.perform(call)
        completion.inference_id = call.inference_id
        return completion


def _keep() -> None:
    """The caller has the stream, and closes it."""


class AsyncChat(AsyncResource):
    """What is to do with chats. Made by `AsyncInferenceClient.chat`.

    Args:
        client: the connections.
    """

    @property
    def completions(self) -> AsyncChatCompletions:
        """Completions of chats."""
        return AsyncChatCompletions(self._client)
