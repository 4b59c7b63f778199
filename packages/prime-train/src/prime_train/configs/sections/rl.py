"""The config of an RL run. Follows the pages "hosted-training/hosted-rl" and "prime-rl"."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prime_train.configs.sections.algorithms import Loss
from prime_train.configs.sections.base import Count, EnvVars, Known, OpenSection, Section
from prime_train.configs.sections.inference import Inference
from prime_train.configs.sections.model import TrainerModel
from prime_train.configs.sections.sources import EvalGroup, TrainGroup
from prime_train.configs.sections.training import (
    Checkpoints,
    Deployment,
    Log,
    Monitors,
    Optimizer,
    Renderer,
    Resume,
    Scheduler,
    Wandb,
    WeightBroadcast,
)

__all__ = [
    "Concurrency",
    "Orchestrator",
    "OrchestratorModel",
    "RLConfig",
    "RolloutTransport",
    "SharedModel",
    "Trainer",
    "TrainerData",
]


class SharedModel(TrainerModel):
    """`[model]` of RL: what all roles share; a role's own `model` wins."""


class TrainerData(Section):
    """`[trainer.data]`: where batches come from.

    Attributes:
        fake: made-up batches; the run then needs no inference.
    """

    fake: OpenSection | None = None


class Trainer(Section):
    """`[trainer]`: the process that updates the weights."""

    model: TrainerModel | None = None
    optim: Optimizer | None = None
    scheduler: Scheduler | None = None
    loss: Loss | None = None
    data: TrainerData | None = None
    log: Log | None = None
    wandb: Wandb | None = None
    ckpt: Checkpoints | None = None
    enable_router_replay: bool | None = None
    env_vars: EnvVars | None = None


class Concurrency(Section):
    """`concurrency`: bounds of the episodes that run at once; equal bounds fix it."""

    min_inflight: Count | None = None
    max_inflight: Count | None = None
    initial_inflight: Count | None = None


class OrchestratorModel(OpenSection):
    """`[orchestrator.model]`: the policy, as the orchestrator names and reaches it."""

    name: str | None = None


class Orchestrator(Section):
    """`[orchestrator]`: collects rollouts and hands batches to the trainer.

    Attributes:
        batch_size: rollouts of a training batch.
        max_off_policy_steps: versions by which a rollout may lag behind.
    """

    batch_size: Count | None = None
    constant_trainer_batch_size: bool | None = True
    max_off_policy_steps: Count | None = 8
    concurrency: Concurrency | None = None
    model: OrchestratorModel | None = None
    renderer: Renderer | None = None
    train: TrainGroup | None = None
    eval: EvalGroup | None = None
    log: Log | None = None
    env_vars: EnvVars | None = None


class RolloutTransport(Section):
    """`rollout_transport`: how rollouts reach the trainer."""

    type: Annotated[str, Known("zmq", "filesystem")] | None = None


class RLConfig(Section):
    """The config of an RL run. Follows the page "hosted-training/hosted-rl".

    Attributes:
        name: display name of the run.
        max_steps: training steps.
        seq_len: tokens of a sequence.
        env_vars: variables of all processes.
        model: the model that all roles share.
        deployment: GPUs and nodes.
        ckpt: checkpoints; None saves none.
        resume: the checkpoint to begin from.
        wandb: where Weights & Biases logs it.
        monitors: the same, by prime-rl's name for it, and other outlets.
        log: how much is logged.
        trainer: the trainer.
        orchestrator: rollouts, environments and their algorithms.
        inference: the inference servers.
        weight_broadcast: how new weights reach the inference servers.
        rollout_transport: how rollouts reach the trainer.
    """

    name: str | None = None
    max_steps: Count | None = None
    seq_len: Count | None = None
    env_vars: EnvVars | None = None
    model: SharedModel | None = None
    deployment: Deployment | None = Field(default_factory=Deployment)
    ckpt: Checkpoints | None = None
    resume: Resume | None = None
    wandb: Wandb | None = None
    monitors: Monitors | None = None
    log: Log | None = None
    trainer: Trainer | None = None
    orchestrator: Orchestrator | None = None
    inference: Inference | None = None
    weight_broadcast: WeightBroadcast | None = None
    rollout_transport: RolloutTransport | None = None
