"""What is offered for training runs: models, and clusters with their GPUs, storage and prices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from prime_local.contract.document import JsonObject
from prime_local.sandboxes.record import wire_date


@dataclass(frozen=True)
class TrainingModel:
    """A model that can be trained.

    Args:
        name: its id on the Hugging Face hub.
        parameters: how many it has.
        context: tokens that it reads at most.
    """

    name: str
    parameters: int
    context: int


MODELS = {
    model.name: model
    for model in (
        TrainingModel("Qwen/Qwen3-0.6B", 600_000_000, 40_960),
        TrainingModel("PrimeIntellect/Qwen3-0.6B-Reverse-Text-SFT", 600_000_000, 40_960),
        TrainingModel("Qwen/Qwen3-4B", 4_000_000_000, 40_960),
        TrainingModel("Qwen/Qwen3-4B-Instruct-2507", 4_000_000_000, 262_144),
        TrainingModel("Qwen/Qwen3.5-4B", 4_000_000_000, 262_144),
        TrainingModel("Qwen/Qwen3-8B", 8_200_000_000, 40_960),
        TrainingModel("Qwen/Qwen3-30B-A3B", 30_500_000_000, 40_960),
        TrainingModel("Qwen/Qwen3-30B-A3B-Thinking-2507", 30_500_000_000, 262_144),
        TrainingModel("Qwen/Qwen3-32B", 32_800_000_000, 40_960),
    )
}
# What a model has that is not among those.
UNKNOWN_MODEL = TrainingModel("unknown", 8_000_000_000, 40_960)
_LARGE = 10_000_000_000


@dataclass
class Cluster:
    """GPUs of one type in one place.

    Args:
        id: of the cluster.
        name: of the cluster.
        gpu_type: the type of all of them.
        gpus: how many there are.
        price: USD for one of them and an hour; 0 where they are paid for already.
        team_id: whom they are reserved for; None when anybody may have them on demand.
        shared_storage: whether runs there can mount a volume.
        large_models: whether models above 10 billion parameters are cached there.
        taken: how many are in use.
        withheld: how many a test has taken away; negative for those that it has added.
    """

    id: str
    name: str
    gpu_type: str
    gpus: int
    price: Decimal
    team_id: str | None = None
    shared_storage: bool = True
    large_models: bool = True
    taken: int = 0
    withheld: int = 0

    @property
    def reserved(self) -> bool:
        return self.team_id is not None

    @property
    def free(self) -> int:
        """How many GPUs are left."""
        return self.gpus - self.taken - self.withheld

    def has_cached(self, model: str) -> bool:
        """Say whether a run of a model starts there without a download."""
        known = MODELS.get(model)
        return known is not None and (self.large_models or known.parameters < _LARGE)

    def to_wire(self, synced_at: datetime) -> JsonObject:
        """Return the `FftModelCluster` object of the contract."""
        return {
            "clusterId": self.id,
            "clusterName": self.name,
            "gpuType": self.gpu_type,
            "cacheSyncedAt": wire_date(synced_at),
        }

    def to_offer_wire(self) -> JsonObject:
        """Return the `OnDemandGpuType` object of the contract."""
        return {
            "gpuType": self.gpu_type,
            "pricePerGpuHour": float(self.price),
            "discountLabel": None,
            "availableNow": self.free > 0,
            "isBeta": True,
        }

    def to_state(self) -> JsonObject:
        """Return all of it, for tests."""
        return {
            "cluster_id": self.id,
            "gpu_type": self.gpu_type,
            "team_id": self.team_id,
            "free": self.free,
            "taken": self.taken,
            "price": str(self.price),
        }


def make_clusters(team_id: str) -> list[Cluster]:
    """Return all clusters, free of runs.

    Args:
        team_id: the team that has reserved one.
    """
    return [
        Cluster("cltrnathens0000000000000a", "athens", "H200_141GB", 16, Decimal(0), team_id),
        Cluster("cltrndublin0000000000000b", "dublin", "H200_141GB", 64, Decimal("2.69")),
        Cluster("cltrnoslo000000000000000c", "oslo", "B200_180GB", 32, Decimal("4.49")),
        Cluster(
            "cltrnlisbon0000000000000d",
            "lisbon",
            "H100_80GB",
            32,
            Decimal("1.99"),
            shared_storage=False,
            large_models=False,
        ),
    ]
