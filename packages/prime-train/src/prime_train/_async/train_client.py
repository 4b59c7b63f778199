"""The client of training, composed of its parts."""

from __future__ import annotations

from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResourceClient
from prime_train._async.capacity import AsyncCapacity
from prime_train._async.environments import AsyncEnvironments
from prime_train._async.evaluations import AsyncEvaluations
from prime_train._async.external_runs import AsyncExternalRuns
from prime_train._async.hosted_evaluations import AsyncHostedEvaluations
from prime_train._async.runs import AsyncRuns
from prime_train._async.volumes import AsyncVolumes

__all__ = ["AsyncTrainClient"]

USER_AGENT = "prime-train/0.1.0"


class AsyncTrainClient(AsyncResourceClient):
    """Dispatches runs and follows them, moves files of volumes, and keeps evaluations.

    Use it as a context manager, or close it with `aclose`. It works on any number of event
    loops and in forked children, and pickles as its configuration, without the key.

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        client: connections to share with other clients, in place of ``api_key``.
    """

    def __init__(self, api_key: str | None = None, *, client: AsyncAPIClient | None = None) -> None:
        super().__init__(api_key, client, USER_AGENT)
        self._hosted_evaluations = AsyncHostedEvaluations(self._client)
        self._runs = AsyncRuns(self._client)
        self._volumes = AsyncVolumes(self._client)

    @property
    def runs(self) -> AsyncRuns:
        """Training runs."""
        return self._runs

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

    @property
    def volumes(self) -> AsyncVolumes:
        """Volumes, and the files on them."""
        return self._volumes

    @property
    def capacity(self) -> AsyncCapacity:
        """Models, GPUs and prices for runs."""
        return AsyncCapacity(self._client)

    @property
    def external_runs(self) -> AsyncExternalRuns:
        """Runs that are executed elsewhere."""
        return AsyncExternalRuns(self._client)

    def _close_schedules(self) -> None:
        self._hosted_evaluations._close_schedules()
        self._runs._close_schedules()
        self._volumes._close_schedules()
