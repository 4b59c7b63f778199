"""Rules of RL and SFT alike: size, volume, checkpoints, models.

Follow the pages "hosted-training/hosted-rl", "hosted-training/volume-models",
"hosted-training/volume-capacity" and "prime-rl/advanced".
"""

from __future__ import annotations

import re

from prime_train.configs.rules.findings import Circumstances, Findings, hint, refusal
from prime_train.configs.sections.model import TrainerModel
from prime_train.configs.sections.rl import RLConfig
from prime_train.configs.sections.sft import SFTConfig
from prime_train.configs.sections.training import Renderer
from prime_train.configs.sizing import count_gpus
from prime_train.configs.values import KeyPath

__all__ = ["MOUNT", "model_name_findings", "shared_findings", "vlm_findings"]

MOUNT = "/volume"

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_ON_VOLUME = re.compile(rf"{MOUNT}(/{_PART})+")
_BF16 = "bfloat16"


def shared_findings(settings: RLConfig | SFTConfig, around: Circumstances) -> Findings:
    """Yield what both kinds of run are refused for, and hints."""
    yield from _gpu_findings(settings, around)
    yield from _checkpoint_findings(settings, around)
    resume = settings.resume
    if resume is not None and (resume.dir or "").startswith(f"{MOUNT}/") and not around.has_volume:
        yield hint(("resume", "dir"), "lies on a volume, but the run mounts none; pass volume")
    if settings.wandb is not None and not around.has_wandb_key:
        yield hint(("wandb",), "is left out, since no WANDB_API_KEY goes along")
    monitors = settings.monitors
    if monitors is not None and monitors.wandb is not None and not around.has_wandb_key:
        yield hint(("monitors", "wandb"), "can't log, since no WANDB_API_KEY goes along")
    extra = settings.model_extra or {}
    if "output_dir" in extra:
        yield hint(("output_dir",), "is set by the platform; leave it out")


def _gpu_findings(settings: RLConfig | SFTConfig, around: Circumstances) -> Findings:
    deployment = ("deployment",)
    try:
        gpus = count_gpus(settings)
    except ValueError as error:
        yield refusal(deployment, str(error))
        return
    if gpus.total > around.gpu_cap:
        message = f"asks for {gpus.total} GPUs; a run may hold {around.gpu_cap}"
        yield refusal(deployment, message)


def _checkpoint_findings(settings: RLConfig | SFTConfig, around: Circumstances) -> Findings:
    checkpoints, steps = settings.ckpt, settings.max_steps
    if checkpoints is None:
        return
    if not around.has_volume:
        yield hint(("ckpt",), "checkpoints are lost with the run unless it mounts a volume")
    pinned = checkpoints.keep_interval
    if pinned and checkpoints.keep_last is None and steps is not None and steps % pinned:
        message = "the last step is no multiple of it, so its checkpoint may be deleted"
        yield hint(("ckpt", "keep_interval"), message)


def model_name_findings(
    name: str | None, path: KeyPath, around: Circumstances, renderer: Renderer | None
) -> Findings:
    """Yield what is wrong with a model that lies on a volume."""
    if name is None or not name.startswith("/"):
        return
    if not _ON_VOLUME.fullmatch(name):
        message = (
            f"weights on a volume are named {MOUNT}/folder/..., each part of letters, digits and "
            "._- after a letter or digit"
        )
        yield refusal(path, message)
    elif not around.has_volume:
        yield refusal(path, "lies on a volume, but the run mounts none; pass volume")
    if renderer is None or renderer.name in (None, "auto"):
        yield hint(path, "a path names no model family; set the renderer's name explicitly")


def vlm_findings(model: TrainerModel | None, path: KeyPath) -> Findings:
    """Yield dtypes that a model with `vlm` can't have."""
    if model is None or model.vlm is None:
        return
    for key in ("optimization_dtype", "reduce_dtype"):
        dtype: str | None = getattr(model, key)
        if dtype is None:
            yield hint((*path, "vlm"), f'needs {key} = "{_BF16}" beside it')
        elif dtype != _BF16:
            yield refusal((*path, key), f'must be "{_BF16}", since vlm is set')
