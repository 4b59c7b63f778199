"""The record of a Slurm deployment, with its wire forms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from prime_local.contract.document import JsonObject
from prime_local.factory.cluster import GPU_TYPE, GPUS
from prime_local.sandboxes.record import wire_date

STAGES = ("PENDING", "DEPLOYING", "RUNNING")
RUNNING = len(STAGES) - 1
# Its users hand a job in every so often; it waits, then runs until the next one comes.
JOB_CYCLE = timedelta(seconds=900)
JOB_WAIT = timedelta(seconds=60)


@dataclass
class Deployment:
    """A Slurm deployment.

    Args:
        stage: a place in `STAGES`.
        nodes: claimed now.
        gpu_count: GPUs that its row shows, which lags behind the nodes.
        job_nodes: nodes of each of its jobs, the first ones.
        members: `SlurmMember` objects of the contract.
    """

    id: str
    team_id: str
    prime_cluster_id: str
    name: str
    nodes: list[str]
    gpu_count: int
    job_nodes: int
    members: list[JsonObject]
    created_at: datetime
    started_at: datetime | None = None
    stage: int = 0

    @property
    def settled(self) -> bool:
        """Whether its row shows the nodes that it has."""
        return self.gpu_count == GPUS * len(self.nodes)

    def busy_nodes(self, now: datetime) -> list[str]:
        """Return the nodes on which its job runs now."""
        if self.started_at is None or (now - self.started_at) % JOB_CYCLE < JOB_WAIT:
            return []
        return self.nodes[: self.job_nodes]

    def to_wire(self) -> JsonObject:
        """Return the `SlurmCluster` object of the contract."""
        return {
            "id": self.id,
            "primeClusterId": self.prime_cluster_id,
            "displayName": self.name,
            "status": STAGES[self.stage],
            "gpuType": GPU_TYPE,
            "gpuCount": self.gpu_count,
            "createdAt": wire_date(self.created_at),
            "startedAt": self.started_at and wire_date(self.started_at),
        }
