"""The client of inference, composed of its parts."""

from __future__ import annotations

from types import TracebackType

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_inference._async.chat import AsyncChat
from prime_inference._async.evaluations import AsyncEvaluations
from prime_inference._async.models import AsyncModels
from prime_inference._async.resource import AsyncInferenceResource

__all__ = ["AsyncInferenceClient"]

USER_AGENT = "prime-inference/0.1.0"


class AsyncInferenceClient(AsyncInferenceResource):
    """Completes chats, streams them, and asks evaluation models.

    Use it as a context manager, or close it with `aclose`. It works on any number of event
    loops and in forked children, and pickles as its configuration, without the key.

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        client: connections to share with other clients, in place of ``api_key``.
    """

    def __init__(self, api_key: str | None = None, *, client: AsyncAPIClient | None = None) -> None:
        if client is not None and not isinstance(client, AsyncAPIClient):
            raise TypeError(f"client is an AsyncAPIClient, not {type(client).__name__}")
        if client is not None and api_key is not None:
            raise ValueError("pass api_key or client, not both")
        super().__init__(client or AsyncAPIClient(api_key, user_agent=USER_AGENT))
        self._client._share(self)

    @property
    def models(self) -> AsyncModels:
        """The catalogue of models."""
        return AsyncModels(self._transport)

    @property
    def chat(self) -> AsyncChat:
        """Chats: ``chat.completions.create`` completes one."""
        return AsyncChat(self._transport)

    @property
    def evaluations(self) -> AsyncEvaluations:
        """Typed questions to evaluation models."""
        return AsyncEvaluations(self._transport)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self._client)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Waits, at most 15 s, for clean-up under way, then closes the connections.

        Shared connections are closed by the last client that uses them.
        """
        await self._client._release(self)


def _restore(cls: type[AsyncInferenceClient], client: AsyncAPIClient) -> AsyncInferenceClient:
    return cls(client=client)
