"""The client of compute and account, composed of its parts."""

from __future__ import annotations

from prime_compute._async.account import AsyncAccount
from prime_compute._async.availability import AsyncAvailability
from prime_compute._async.billing import AsyncBilling
from prime_compute._async.disks import AsyncDisks
from prime_compute._async.factory import AsyncFactory
from prime_compute._async.feedback import AsyncFeedback
from prime_compute._async.pods import AsyncPods
from prime_compute._async.secrets import AsyncSecrets
from prime_compute._async.slurm import AsyncSlurm
from prime_compute._async.ssh_keys import AsyncSshKeys
from prime_compute._async.teams import AsyncTeams
from prime_compute._async.tokens import AsyncTokens
from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResourceClient

__all__ = ["AsyncComputeClient"]

USER_AGENT = "prime-compute/0.1.0"


class AsyncComputeClient(AsyncResourceClient):
    """Finds GPUs, provisions pods and disks, and manages an account.

    Use it as a context manager, or close it with `aclose`. It works on any number of event
    loops and in forked children, and pickles as its configuration, without the key.

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        client: connections to share with other clients, in place of ``api_key``.
    """

    def __init__(self, api_key: str | None = None, *, client: AsyncAPIClient | None = None) -> None:
        super().__init__(api_key, client, USER_AGENT)
        self._pods = AsyncPods(self._client)
        self._disks = AsyncDisks(self._client)
        self._slurm = AsyncSlurm(self._client)

    @property
    def availability(self) -> AsyncAvailability:
        """Offers of GPUs and disks, and the cheapest of them."""
        return AsyncAvailability(self._client)

    @property
    def pods(self) -> AsyncPods:
        """Rented machines."""
        return self._pods

    @property
    def disks(self) -> AsyncDisks:
        """Storage that outlives pods."""
        return self._disks

    @property
    def billing(self) -> AsyncBilling:
        """The wallet, and what training runs cost."""
        return AsyncBilling(self._client)

    @property
    def ssh_keys(self) -> AsyncSshKeys:
        """Public keys that pods and clusters let in."""
        return AsyncSshKeys(self._client)

    @property
    def teams(self) -> AsyncTeams:
        """The caller's teams, and who belongs to them."""
        return AsyncTeams(self._client)

    @property
    def account(self) -> AsyncAccount:
        """Who the caller is, and what it may do."""
        return AsyncAccount(self._client)

    @property
    def tokens(self) -> AsyncTokens:
        """API keys, without their values."""
        return AsyncTokens(self._client)

    @property
    def secrets(self) -> AsyncSecrets:
        """Secrets that environments are given."""
        return AsyncSecrets(self._client)

    @property
    def feedback(self) -> AsyncFeedback:
        """Words to the people behind the platform."""
        return AsyncFeedback(self._client)

    @property
    def slurm(self) -> AsyncSlurm:
        """Slurm on a team's dedicated clusters."""
        return self._slurm

    @property
    def factory(self) -> AsyncFactory:
        """What a team's dedicated clusters do."""
        return AsyncFactory(self._client)

    def _close_schedules(self) -> None:
        self._pods._close_schedules()
        self._disks._close_schedules()
        self._slurm._close_schedules()
