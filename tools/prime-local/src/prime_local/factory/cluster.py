"""The dedicated cluster: its nodes, and what they are set aside for. Made up, but consistent."""

from __future__ import annotations

from collections.abc import Iterable

NAME = "research-b300"
GPU_TYPE = "B300_262GB"
GPUS = 8  # of a node
NODES = tuple(f"gpu-{number:02}" for number in range(1, 21))
TRAINING, INFERENCE = NODES[:4], NODES[4:8]
CORDONED = NODES[-1]
FOR_SLURM = NODES[8:-1]


def idle_nodes(claimed: Iterable[str]) -> list[str]:
    """Return the nodes that Slurm may claim, apart from those that it has."""
    taken = set(claimed)
    return [node for node in FOR_SLURM if node not in taken]
