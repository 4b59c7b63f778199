"""Reading the states of sandboxes and waiting for them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence

from prime_core._async.api_client import AsyncAPIClient
from prime_core.concurrency import run_all
from prime_core.errors import APIError, PrimeError
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_sandboxes import commands, waiting
from prime_sandboxes._async.networks import AsyncSandboxNetworks
from prime_sandboxes.arguments import check_count, check_id, check_ids, check_seconds
from prime_sandboxes.batch_routes import BatchRoute
from prime_sandboxes.command_streams import CommandOutput
from prime_sandboxes.errors import BatchStatusUnsupportedError, SandboxNotRunningError
from prime_sandboxes.models import (
    BatchSandboxStatusRequest,
    BatchSandboxStatusResponse,
    CommandResponse,
    Sandbox,
    SandboxStatusSnapshot,
)
from prime_sandboxes.operations import BATCH_GET_SANDBOX_STATUSES, GET_SANDBOX

__all__ = ["AsyncSandboxWaiting"]

REACHABILITY_TIMEOUT = 10.0


class AsyncSandboxWaiting(AsyncSandboxNetworks):
    """The part of the client that reads states and waits for them.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._status_route = BatchRoute(
            self._transport, BATCH_GET_SANDBOX_STATUSES, BatchSandboxStatusResponse
        )
        self._schedules = PerLoop(
            lambda: PollSchedule(self._read_statuses, transient=waiting.is_transient)
        )

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)
        super()._close_schedules()

    async def get_sandbox_statuses(self, sandbox_ids: Sequence[str]) -> BatchSandboxStatusResponse:
        """Reads the states of 1 to 100 sandboxes at once.

        Args:
            sandbox_ids: different ids.

        Raises:
            BatchStatusUnsupportedError: the platform has no such route.
            APIError: any other failure.
        """
        request = BatchSandboxStatusRequest(sandbox_ids=check_ids(sandbox_ids))
        return await self._status_route.read(request)

    async def _read_statuses(
        self, sandbox_ids: builtins.list[str]
    ) -> Mapping[str, SandboxStatusSnapshot | Exception]:
        """States for the poll schedule, one by one where the batch route is missing."""
        if not self._status_route.missing:
            try:
                answer = await self.get_sandbox_statuses(sandbox_ids)
            except BatchStatusUnsupportedError:
                pass
            else:
                found: dict[str, SandboxStatusSnapshot | Exception] = {
                    snapshot.sandbox_id: snapshot for snapshot in answer.statuses
                }
                for error in answer.errors:
                    found[error.sandbox_id] = _lookup_error(
                        error.sandbox_id, error.code, error.message
                    )
                return found
        pairs = await run_all(self._read_status(sandbox_id) for sandbox_id in sandbox_ids)
        return dict(pairs)

    async def _read_status(self, sandbox_id: str) -> tuple[str, SandboxStatusSnapshot | Exception]:
        try:
            sandbox = await self._transport.request(
                GET_SANDBOX, Sandbox, path={"sandbox_id": sandbox_id}
            )
        except APIError as error:
            if error.status_code == 404:
                return sandbox_id, _lookup_error(sandbox_id, "NOT_FOUND", str(error))
            raise
        return sandbox_id, SandboxStatusSnapshot(
            sandbox_id=sandbox_id,
            status=sandbox.status,
            error_type=sandbox.error_type,
            error_message=sandbox.error_message,
            pending_image_build_id=sandbox.pending_image_build_id,
        )

    async def wait_for_creation(
        self,
        sandbox_id: str,
        max_attempts: int = 60,
        stability_checks: int = 1,
        image_build_timeout_seconds: float = 3000,
    ) -> None:
        """Waits until a sandbox runs and its gateway runs commands.

        All waits of a client share their questions to the platform. A sandbox that was created
        with a ``lan_network_id`` by this client then joins that network, for which this waits
        at most 120 s more.

        Follows the documented page "sandboxes/sdk".

        Args:
            sandbox_id: the sandbox.
            max_attempts: the budget: n is n seconds up to 5, then 2 more each, so that the
                default is 115 s; once for RUNNING and once for the gateway.
            stability_checks: commands in a row that must succeed.
            image_build_timeout_seconds: seconds for the first build of the image, during
                which the budget is held.

        Raises:
            SandboxNotRunningError: it ended, or a budget did; the subclass says why.
            NetworkSyncTimeoutError: a ``TimeoutError``; the network's membership or rules are
                not in force in time.
            LanMembershipError: a ``RuntimeError``; it left the network meanwhile.
            APIError: the states could not be read, or the network could not be joined.
        """
        check_id(sandbox_id)
        budget = waiting.waiting_budget(max_attempts)
        check_count("stability_checks", stability_checks, least=1)
        check_seconds("image_build_timeout_seconds", image_build_timeout_seconds)
        await waiting.wait_until_running(
            self._schedules.get(), sandbox_id, budget, image_build_timeout_seconds
        )
        await waiting.wait_until_reachable(
            self._check_reachable, sandbox_id, budget, stability_checks
        )
        await self._join_network(sandbox_id)

    async def _check_reachable(self, sandbox_id: str) -> CommandResponse:
        command = "echo 'sandbox ready'"
        spec = commands.command_spec(command, None, None, None)
        return await commands.run_command(
            self._gateway, sandbox_id, command, spec, REACHABILITY_TIMEOUT, CommandOutput()
        )

    async def bulk_wait_for_creation(
        self,
        sandbox_ids: Sequence[str],
        max_attempts: int = 60,
        image_build_timeout_seconds: float = 3000,
    ) -> dict[str, str]:
        """Waits until sandboxes run, without asking their gateways.

        They join their networks as in `wait_for_creation`.

        Follows the documented page "sandboxes/sdk".

        Args:
            sandbox_ids: different ids, any number.
            max_attempts: the budget of each, as in `wait_for_creation`.
            image_build_timeout_seconds: as in `wait_for_creation`.

        Returns:
            The state of each id, which is RUNNING.

        Raises:
            SandboxNotRunningError: the first that ended or did not run in time.
            APIError: the states could not be read, or a network could not be joined.
        """
        budget = waiting.waiting_budget(max_attempts)
        check_seconds("image_build_timeout_seconds", image_build_timeout_seconds)
        schedule = self._schedules.get()

        async def wait(sandbox_id: str) -> SandboxStatusSnapshot:
            snapshot = await waiting.wait_until_running(
                schedule, sandbox_id, budget, image_build_timeout_seconds
            )
            await self._join_network(sandbox_id)
            return snapshot

        snapshots = await run_all(wait(sandbox_id) for sandbox_id in check_ids(sandbox_ids))
        return {snapshot.sandbox_id: str(snapshot.status) for snapshot in snapshots}


def _lookup_error(sandbox_id: str, code: str, message: str) -> PrimeError:
    error_type = "SANDBOX_NOT_FOUND" if code == "NOT_FOUND" else code
    return SandboxNotRunningError(sandbox_id, None, error_type, None, message)
