"""The client of training, composed of its parts."""

from __future__ import annotations

from types import TracebackType

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_train._async.environments import AsyncEnvironments
from prime_train._async.evaluations import AsyncEvaluations
from prime_train._async.hosted_evaluations import AsyncHostedEvaluations
from prime_train._async.resource import AsyncTrainResource

__all__ = ["AsyncTrainClient"]

USER_AGENT = "prime-train/0.1.0"


class AsyncTrainClient(AsyncTrainResource):
    """Dispatches runs and follows them, moves files of volumes, and keeps evaluations.

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
        self._hosted_evaluations = AsyncHostedEvaluations(self._client)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self._client)

    @property
    def evaluations(self) -> AsyncEvaluations:
        """Evaluations and their samples."""
        return AsyncEvaluations(self._client)

    @property
    def hosted_evaluations(self) -> AsyncHostedEvaluations:
        """Evaluations that the platform runs."""
        return self._hosted_evaluations

    @property
    def environments(self) -> AsyncEnvironments:
        """The environments hub."""
        return AsyncEnvironments(self._client)

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
        self._hosted_evaluations._close_schedules()
        await self._client._release(self)


def _restore(cls: type[AsyncTrainClient], client: AsyncAPIClient) -> AsyncTrainClient:
    return cls(client=client)
