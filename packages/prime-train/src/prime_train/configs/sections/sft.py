"""The config of an SFT run.

Follows the pages "hosted-training/hosted-sft" and "prime-rl/training".
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prime_train.configs.sections.base import Count, EnvVars, Known, Section
from prime_train.configs.sections.inference import Inference
from prime_train.configs.sections.model import SftModel
from prime_train.configs.sections.rl import Concurrency
from prime_train.configs.sections.sources import EvalGroup
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

__all__ = ["Columns", "LossMask", "OnlineEval", "SFTConfig", "SftData", "Validation"]


class Columns(Section):
    """`[data.columns]`: the dataset's columns.

    Attributes:
        renderer: settings of the renderer that a column gives per row.
    """

    messages: str | None = None
    prompt: str | None = None
    completion: str | None = None
    tools: str | None = None
    message_loss_mask: str | None = None
    renderer: dict[str, str | None] | None = None


class SftData(Section):
    """`[data]`: the dataset.

    Attributes:
        name: folder on the volume, relative to it or below ``/volume``.
        type: ``sft``, or ``fake`` for made-up data, which needs no volume.
        seq_len: tokens of a sample.
        batch_size: tokens or samples of a step.
    """

    name: str | None = None
    type: Annotated[str, Known("sft", "fake")] | None = "sft"
    seq_len: Count | None = None
    batch_size: Count | None = None
    micro_batch_size: Count | None = None
    splits: list[str] | None = None
    columns: Columns | None = None


class LossMask(Section):
    """`[loss_mask]`: the roles whose tokens are trained on."""

    system: bool | None = None
    user: bool | None = None
    assistant: bool | None = None
    tool: bool | None = None


class Validation(Section):
    """`[val]`: validation on another dataset every so many steps."""

    interval: Count | None = None
    data: SftData | None = None


class OnlineEval(EvalGroup):
    """`[eval]`: score checkpoints while the run trains; needs `[inference]` beside it.

    Attributes:
        cancel_on_new_checkpoint: drop what has not finished when newer weights are ready.
    """

    cancel_on_new_checkpoint: bool | None = True
    concurrency: Concurrency | None = None


class SFTConfig(Section):
    """The config of an SFT run. Follows the page "hosted-training/hosted-sft".

    Attributes:
        name: display name of the run.
        max_steps: training steps.
        env_vars: variables of all processes.
        model: the model.
        data: the data set.
        optim: the optimizer.
        scheduler: the learning rate's course.
        renderer: how messages become tokens.
        deployment: GPUs and nodes.
        ckpt: checkpoints; None saves none.
        resume: the checkpoint to begin from.
        loss_mask: the roles that the loss counts.
        val: validation.
        eval: evaluations while it trains.
        inference: the inference servers.
        weight_broadcast: how new weights reach the inference servers.
        wandb: where Weights & Biases logs it.
        monitors: the same, by prime-rl's name for it, and other outlets.
        log: how much is logged.
    """

    name: str | None = None
    max_steps: Count | None = None
    env_vars: EnvVars | None = None
    model: SftModel | None = None
    data: SftData | None = None
    optim: Optimizer | None = None
    scheduler: Scheduler | None = None
    renderer: Renderer | None = None
    deployment: Deployment | None = Field(default_factory=Deployment)
    ckpt: Checkpoints | None = None
    resume: Resume | None = None
    loss_mask: LossMask | None = None
    val: Validation | None = None
    eval: OnlineEval | None = None
    inference: Inference | None = None
    weight_broadcast: WeightBroadcast | None = None
    wandb: Wandb | None = None
    monitors: Monitors | None = None
    log: Log | None = None
