"""Tables that RL and SFT share: optimizer, schedule, checkpoints, monitors, deployment.

Follows the pages "prime-rl/training" and "prime-rl/scaling", and "hosted-training/hosted-rl".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from prime_train.configs.sections.base import Count, Known, OpenSection, Section

__all__ = [
    "Checkpoints",
    "Deployment",
    "Log",
    "Monitors",
    "Optimizer",
    "Renderer",
    "Resume",
    "Scheduler",
    "Wandb",
    "WeightBroadcast",
]


class Deployment(Section):
    """`[deployment]`: the GPUs of a run. `type` is ``single_node`` unless it is set.

    Attributes:
        num_train_gpus: GPUs of the trainer on a single node.
        num_infer_gpus: GPUs of inference on a single node.
        gpus_per_node: GPUs of a node.
        num_train_nodes: nodes of the trainer of several nodes.
        num_infer_nodes: nodes of each inference replica.
        num_infer_replicas: replicas of inference.
        nodes_per_fsdp_group: nodes over which the model is sharded.
    """

    variants: ClassVar[Mapping[str, str]] = {
        "num_train_gpus": "single_node",
        "num_infer_gpus": "single_node",
        "num_train_nodes": "multi_node",
        "num_infer_nodes": "multi_node",
        "num_infer_replicas": "multi_node",
        "nodes_per_fsdp_group": "multi_node",
    }

    type: Annotated[str, Known("single_node", "multi_node")] | None = "single_node"
    num_train_gpus: Count | None = 1
    num_infer_gpus: Count | None = 1
    gpus_per_node: Count | None = 8
    num_train_nodes: Count | None = None
    num_infer_nodes: Count | None = None
    num_infer_replicas: Count | None = None
    nodes_per_fsdp_group: Count | None = None


class Checkpoints(Section):
    """`[ckpt]`: which checkpoints are saved and kept. Off by default.

    Attributes:
        interval: save every so many steps; unset saves at the end only.
        keep_last: keep so many of the newest; unset keeps all.
        keep_interval: keep those whose step is a multiple of it, for good.
        skip_optimizer: leave the optimizer state out when a run resumes; not when it saves.
    """

    interval: Count | None = None
    keep_last: Count | None = None
    keep_interval: Count | None = None
    skip_optimizer: bool | None = None


class Resume(Section):
    """`[resume]`: the checkpoint to start from.

    Attributes:
        dir: its folder, such as ``/volume/runs/<id>/checkpoints/step_50``.
        step: a step of this run.
    """

    dir: str | None = None
    step: Count | None = None


class Wandb(Section):
    """`[wandb]`: Weights & Biases; takes effect only with a key for it."""

    project: str | None = None
    name: str | None = None


class Monitors(Section):
    """`[monitors]`: where metrics go; their further settings are the monitors' own."""

    wandb: OpenSection | None = None
    prime: OpenSection | None = None
    file: OpenSection | None = None


class Log(Section):
    """`log`: verbosity of a process.

    Attributes:
        level: its level, such as ``info`` or ``debug``.
        vf_level: level of the environments; the orchestrator's alone.
    """

    level: str | None = "info"
    vf_level: str | None = None


class Optimizer(Section):
    """`optim`: the optimizer."""

    variants: ClassVar[Mapping[str, str]] = {"mu": "muon"}

    type: Annotated[str, Known("adamw", "muon", "sign_sgd")] | None = None
    lr: float | None = None
    weight_decay: float | None = None
    mu: float | None = None
    max_norm: float | None = None


class Scheduler(Section):
    """`scheduler`: the learning rate over the steps."""

    type: Annotated[str, Known("constant", "linear")] | None = None
    warmup_steps: Count | None = None
    decay_steps: Count | None = None


class Renderer(OpenSection):
    """`renderer`: turns messages into tokens; further keys are the chosen renderer's.

    Attributes:
        name: ``auto`` goes by the model's Hugging Face id; weights on a volume have none, so
            name the family.
        import_path: class of a ``custom`` renderer.
    """

    name: str | None = "auto"
    import_path: str | None = None


class WeightBroadcast(Section):
    """`weight_broadcast`: how new weights reach inference. LoRA takes ``filesystem``."""

    type: Annotated[str, Known("nccl", "filesystem", "nixl")] | None = "nccl"
