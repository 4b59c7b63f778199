"""What a team's dedicated clusters do."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from prime_compute.models import (
    FactoryNodes,
    FactoryStatus,
    FactoryUtilization,
    FactoryWorkloads,
)
from prime_compute.operations import (
    GET_FACTORY_NODES,
    GET_FACTORY_STATUS,
    GET_FACTORY_UTILIZATION,
    LIST_FACTORY_WORKLOADS,
)
from prime_core._async.resource import AsyncResource
from prime_core.arguments import team_of

__all__ = ["AsyncFactory"]

# The most jobs of an answer.
MOST = 200


class AsyncFactory(AsyncResource):
    """Reads what a team's dedicated clusters do. Made by `AsyncComputeClient.factory`.

    What an answer does not tell is None, never zero. An answer of another form or version than
    the documented one is an `APIResponseError`: it is never half understood.

    Args:
        client: the connections.
    """

    async def status(self, team_id: str | None = None) -> FactoryStatus:
        """Reads how the GPUs are divided, and which of them work.

        Args:
            team_id: the team; the configured one by default.

        Raises:
            ConfigurationError: no team is named; nothing was sent.
            ForbiddenError: the caller does not belong to the team; or `NotFoundError`.
            APIResponseError: the answer has another form.
            APIError: any other failure.
        """
        return await self._transport.request(
            GET_FACTORY_STATUS, FactoryStatus, team=team_of(self._client.config, team_id)
        )

    async def nodes(self, team_id: str | None = None) -> FactoryNodes:
        """Reads the state of every machine.

        Args:
            team_id: the team; the configured one by default.

        Raises:
            ConfigurationError: as for `status`, like all other errors.
        """
        return await self._transport.request(
            GET_FACTORY_NODES, FactoryNodes, team=team_of(self._client.config, team_id)
        )

    async def utilization(self, team_id: str | None = None) -> FactoryUtilization:
        """Reads how busy Slurm's nodes were; a gap is a point that is missing.

        Args:
            team_id: the team; the configured one by default.

        Raises:
            ConfigurationError: as for `status`, like all other errors.
        """
        return await self._transport.request(
            GET_FACTORY_UTILIZATION, FactoryUtilization, team=team_of(self._client.config, team_id)
        )

    async def workloads(
        self,
        team_id: str | None = None,
        *,
        workload_type: Literal["training", "inference", "slurm"] | None = None,
        state: Literal["running", "queued", "completed", "failed", "all"] | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> FactoryWorkloads:
        """Reads the jobs, the newest first where some have ended.

        Args:
            team_id: the team; the configured one by default.
            workload_type: one kind only.
            state: in this state; those that run or wait by default.
            since: not before this time, which has a zone.
            limit: most jobs, 1 to 200; 50 by default where some have ended.

        Raises:
            ValueError: a time without a zone, or a limit out of its range; nothing was sent.
            ConfigurationError: as for `status`, like all other errors.
        """
        if since is not None and since.tzinfo is None:
            raise ValueError("since has a zone, such as datetime.now(timezone.utc)")
        if limit is not None and not 1 <= limit <= MOST:
            raise ValueError(f"limit is 1 to {MOST}, not {limit}")
        query = {
            "workload_type": workload_type,
            "state": state,
            "since": None if since is None else since.isoformat(),
            "limit": limit,
        }
        return await self._transport.request(
            LIST_FACTORY_WORKLOADS,
            FactoryWorkloads,
            query=query,
            team=team_of(self._client.config, team_id),
        )
