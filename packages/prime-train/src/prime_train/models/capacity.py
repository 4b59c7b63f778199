"""What runs can be dispatched on."""

from __future__ import annotations

from decimal import Decimal

from pydantic import Field

from prime_core.exact import ExactNumbers, Price
from prime_core.models import ResponseModel, UtcDatetime

__all__ = ["ModelCluster", "OnDemandGpu", "TrainableModel", "TrainingCapacity"]


class ModelCluster(ResponseModel):
    """A cluster that holds a model's weights, so that a run of it starts warm.

    Attributes:
        cluster_id: the cluster.
        cluster_name: its name.
        gpu_type: type of its GPUs, such as ``H200_141GB``; None when the platform does not say.
        cache_synced_at: when the weights were last seen there.
    """

    cluster_id: str = Field(alias="clusterId")
    cluster_name: str = Field(alias="clusterName")
    gpu_type: str | None = Field(None, alias="gpuType")
    cache_synced_at: UtcDatetime | None = Field(None, alias="cacheSyncedAt")


class TrainableModel(ResponseModel):
    """A model whose weights are cached.

    Attributes:
        name: its id, such as ``Qwen/Qwen3-4B-Instruct-2507``.
        clusters: where it is cached.
    """

    name: str
    clusters: list[ModelCluster] = Field(default_factory=list)


class OnDemandGpu(ResponseModel):
    """A type of GPU that is sold by the hour.

    Attributes:
        gpu_type: the type, such as ``H200_141GB``.
        price_per_gpu_hour: USD for one. A run keeps the price of its dispatch.
        discount_label: name of a promotion, if there is one.
        available_now: whether there is room, as a hint: a run may still queue, by how many GPUs
            it needs and how they are connected. False where the platform does not say.
        is_beta: whether it takes access to the beta of on-demand training.
    """

    gpu_type: str = Field(alias="gpuType")
    price_per_gpu_hour: Price = Field(alias="pricePerGpuHour")
    discount_label: str | None = Field(None, alias="discountLabel")
    available_now: bool = Field(False, alias="availableNow")
    is_beta: bool = Field(False, alias="isBeta")


class TrainingCapacity(ExactNumbers, ResponseModel):
    """What an account or a team can dispatch runs on.

    Attributes:
        models: the models that start warm. A run on demand may train others, which it downloads.
        on_demand: types of GPU that are sold by the hour; none may mean that there are none now.
        on_demand_beta_access: whether runs may be on demand. Only False says that they may not;
            None says nothing, as older platforms do.
    """

    models: list[TrainableModel] = Field(default_factory=list)
    on_demand: list[OnDemandGpu] = Field(default_factory=list, alias="onDemand")
    on_demand_beta_access: bool | None = Field(None, alias="onDemandBetaAccess")

    @property
    def prices(self) -> dict[str, Decimal]:
        """USD for a GPU and an hour on demand, by its type."""
        return {each.gpu_type: each.price_per_gpu_hour for each in self.on_demand}


class GpuTypeList(ResponseModel):
    """Types of GPU.

    Attributes:
        gpu_types: their names.
    """

    gpu_types: list[str] = Field(default_factory=list, alias="gpuTypes")
