"""How many GPUs and checkpoints a config asks for."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from prime_train.configs.sections.inference import Inference
from prime_train.configs.sections.rl import RLConfig
from prime_train.configs.sections.sft import SFTConfig
from prime_train.configs.sections.training import Checkpoints, Deployment

__all__ = ["GpuCount", "count_gpus", "is_fake", "pinned_checkpoints", "saved_checkpoints"]

DEFAULT_GPUS_PER_NODE = 8


@dataclass(frozen=True)
class GpuCount:
    """GPUs that a run holds.

    Attributes:
        trainer: of the trainer.
        inference: of all replicas of inference.
    """

    trainer: int
    inference: int

    @property
    def total(self) -> int:
        """On all pods."""
        return self.trainer + self.inference


def count_gpus(settings: RLConfig | SFTConfig) -> GpuCount:
    """Count the GPUs of a run.

    Raises:
        ValueError: the deployment does not say how many nodes it takes.
    """
    deployment = settings.deployment or Deployment()
    serves = settings.inference is not None
    if isinstance(settings, RLConfig):
        # Only made-up batches go without inference.
        serves = serves or not is_fake(settings)
    if deployment.type in (None, "single_node"):
        trainer, inference = deployment.num_train_gpus, deployment.num_infer_gpus
        return GpuCount(_or_one(trainer), _or_one(inference) if serves else 0)
    if deployment.type != "multi_node":
        raise ValueError("the deployment is neither single_node nor multi_node")
    if deployment.num_train_nodes is None:
        raise ValueError("a multi_node deployment needs num_train_nodes")
    per_node = deployment.gpus_per_node
    per_node = DEFAULT_GPUS_PER_NODE if per_node is None else per_node
    nodes = _inference_nodes(deployment, settings.inference) if serves else 0
    return GpuCount(deployment.num_train_nodes * per_node, nodes * per_node)


def _inference_nodes(deployment: Deployment, inference: Inference | None) -> int:
    nodes = deployment.num_infer_nodes
    if nodes is None and inference is not None and inference.deployment is not None:
        nodes = inference.deployment.num_nodes
    if nodes is None:
        raise ValueError("a multi_node deployment with inference needs num_infer_nodes")
    return nodes * _or_one(deployment.num_infer_replicas)


def _or_one(count: int | None) -> int:
    return 1 if count is None else count


def is_fake(settings: RLConfig) -> bool:
    """Whether a run trains on made-up batches."""
    data = settings.trainer.data if settings.trainer is not None else None
    return data is not None and data.fake is not None


def saved_checkpoints(max_steps: int | None, checkpoints: Checkpoints) -> int | None:
    """Count the checkpoints that a run saves; `None` when it has no last step."""
    if not checkpoints.interval:
        return 1
    if max_steps is None:
        return None
    return max_steps // checkpoints.interval + (max_steps % checkpoints.interval != 0)


def pinned_checkpoints(max_steps: int | None, checkpoints: Checkpoints) -> int | None:
    """Count those that `keep_interval` holds and that are not among the newest anyway.

    `None` when a run has no last step, and so no last of them.
    """
    if checkpoints.keep_last is None or not checkpoints.keep_interval:
        return 0
    if not checkpoints.interval:
        return 0
    saved = saved_checkpoints(max_steps, checkpoints)
    if saved is None:
        return None
    # A last step off the grid is always among the newest, so the older ones are on it.
    older = max(0, saved - (checkpoints.keep_last + 1))
    every = checkpoints.keep_interval // gcd(checkpoints.interval, checkpoints.keep_interval)
    return older // every
