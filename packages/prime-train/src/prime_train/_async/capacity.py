"""What runs can be dispatched on, and what it costs."""

from __future__ import annotations

import builtins

from prime_core._async.resource import AsyncResource
from prime_core.errors import NotFoundError
from prime_train.configs.estimates import RunEstimate
from prime_train.configs.estimates import estimate as estimate_run
from prime_train.configs.loading import TrainConfig
from prime_train.models.capacity import GpuTypeList, TrainableModel, TrainingCapacity
from prime_train.operations import LIST_AVAILABLE_FFT_MODELS, LIST_AVAILABLE_GPU_TYPES

__all__ = ["AsyncCapacity"]


class AsyncCapacity(AsyncResource):
    """Tells which models, GPUs and prices there are for runs. Made by `AsyncTrainClient`.

    Args:
        client: the connections.
    """

    async def get(self, *, team_id: str | None = None) -> TrainingCapacity:
        """Reads which models start warm, and what GPUs cost on demand.

        Follows the documented page "hosted-training/models".

        Args:
            team_id: the team whose it is; None takes the client's, "" is the personal account.

        Returns:
            All of it; empty, with ``on_demand_beta_access`` None, from a platform too old to say.

        Raises:
            APIError: the call failed.
        """
        try:
            return await self._transport.request(
                LIST_AVAILABLE_FFT_MODELS, TrainingCapacity, team=team_id
            )
        except NotFoundError:
            return TrainingCapacity()

    async def list_models(self, *, team_id: str | None = None) -> builtins.list[TrainableModel]:
        """Reads which models start warm, and where; see `get`.

        Args:
            team_id: as for `get`.

        Raises:
            APIError: the call failed.
        """
        return (await self.get(team_id=team_id)).models

    async def list_gpu_types(self, *, team_id: str | None = None) -> builtins.list[str]:
        """Reads which types of GPU runs can be dispatched on, such as ``H200_141GB``.

        Follows the documented page "hosted-training/models".

        Args:
            team_id: as for `get`.

        Raises:
            APIError: the call failed.
        """
        found = await self._transport.request(LIST_AVAILABLE_GPU_TYPES, GpuTypeList, team=team_id)
        return found.gpu_types

    async def estimate(
        self,
        config: TrainConfig,
        *,
        gpu_type: str | None = None,
        parameters: int | None = None,
        uploads: int = 0,
        other_runs: int = 0,
        team_id: str | None = None,
    ) -> RunEstimate:
        """Estimates what a run takes, at the present prices; see `prime_train.estimate`.

        Follows the documented page "hosted-training/billing".

        Args:
            config: the config.
            gpu_type: type of GPU; by default the config's own.
            parameters: parameters of the model, for the size of its checkpoints.
            uploads: bytes of data and models on the volume.
            other_runs: bytes of other runs' outputs on the volume.
            team_id: as for `get`.

        Returns:
            The estimate. It has no price without a type of GPU, for one that the owner has
            reserved and nobody can buy, and where the platform sells none or does not say.

        Raises:
            ValueError: the type of GPU is not sold, or what `prime_train.estimate` refuses.
            APIError: the call failed.
        """
        found = await self.get(team_id=team_id)
        chosen = gpu_type or config.knobs.gpu_type
        reserved = {each.gpu_type for model in found.models for each in model.clusters}
        priced = bool(found.prices) and (chosen in found.prices or chosen not in reserved)
        return estimate_run(
            config,
            prices=found.prices if priced else None,
            gpu_type=gpu_type,
            parameters=parameters,
            uploads=uploads,
            other_runs=other_runs,
        )
