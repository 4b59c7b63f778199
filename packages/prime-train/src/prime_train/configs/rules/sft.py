"""Rules of SFT runs. Follow the page "hosted-training/hosted-sft"."""

from __future__ import annotations

from prime_train.configs.rules.findings import Circumstances, Findings, refusal
from prime_train.configs.rules.shared import model_name_findings, vlm_findings
from prime_train.configs.rules.sources import group_findings
from prime_train.configs.sections.sft import SFTConfig
from prime_train.configs.sections.training import Deployment

__all__ = ["sft_findings"]


def sft_findings(settings: SFTConfig, around: Circumstances) -> Findings:
    """Yield what an SFT run is refused for, and hints."""
    data = settings.data
    if data is not None and data.name is not None and data.type != "fake" and not around.has_volume:
        message = "needs a volume that holds the data; pass volume, or set data.type to fake"
        yield refusal(("data", "name"), message)
    if settings.model is not None:
        yield from model_name_findings(
            settings.model.name, ("model", "name"), around, settings.renderer
        )
        yield from vlm_findings(settings.model, ("model",))
    yield from _eval_findings(settings)


def _eval_findings(settings: SFTConfig) -> Findings:
    if settings.eval is None:
        if settings.inference is not None:
            yield refusal(("inference",), "serves online evals alone; add [eval] or remove it")
        return
    yield from group_findings(settings.eval, ("eval",))
    deployment = settings.deployment or Deployment()
    if deployment.type == "multi_node":
        if not deployment.num_infer_nodes:
            message = "online evals on several nodes need at least 1"
            yield refusal(("deployment", "num_infer_nodes"), message)
        if settings.inference is None or settings.inference.router is None:
            message = "online evals on several nodes need an [inference.router] table"
            yield refusal(("inference", "router"), message, near=("eval",))
        return
    trainer, inference = deployment.num_train_gpus or 1, deployment.num_infer_gpus or 1
    per_node = deployment.gpus_per_node
    if per_node is not None and trainer + inference > per_node:
        message = (
            f"trainer and online evals take {trainer} + {inference} GPUs of one node; "
            f"it has {per_node}"
        )
        yield refusal(("deployment",), message)
