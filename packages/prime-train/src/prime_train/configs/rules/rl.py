"""Rules of RL runs.

Follow the pages "hosted-training/hosted-rl", "prime-rl/algorithms" and "prime-rl/inference".
"""

from __future__ import annotations

from prime_train.configs.inheritance import train_sources
from prime_train.configs.rules.findings import Circumstances, Findings, hint, refusal
from prime_train.configs.rules.sampling import agent_findings, is_truncated, top_k_findings
from prime_train.configs.rules.shared import model_name_findings, vlm_findings
from prime_train.configs.rules.sources import group_findings
from prime_train.configs.sections.algorithms import Algorithm, FrozenModel
from prime_train.configs.sections.rl import RLConfig
from prime_train.configs.sections.sources import Sampling, TrainGroup, TrainSource
from prime_train.configs.sections.training import Deployment, Renderer
from prime_train.configs.sizing import is_fake
from prime_train.configs.values import KeyPath

__all__ = ["rl_findings"]

_TRAIN = ("orchestrator", "train")


def rl_findings(settings: RLConfig, around: Circumstances) -> Findings:
    """Yield what an RL run is refused for, and hints."""
    yield from _inference_findings(settings)
    yield from _model_findings(settings, around)
    if settings.orchestrator is None:
        return
    if settings.orchestrator.eval is not None:
        yield from group_findings(settings.orchestrator.eval, ("orchestrator", "eval"))
    group = settings.orchestrator.train
    if group is not None:
        yield from group_findings(group, _TRAIN)
        yield from _training_findings(group)


def _inference_findings(settings: RLConfig) -> Findings:
    deployment = settings.deployment or Deployment()
    if deployment.type == "multi_node" or is_fake(settings):
        return
    if settings.inference is None:
        message = "a single-node run needs an [inference] table; an empty one will do"
        yield refusal(("inference",), message, near=("deployment",))
    if deployment.num_infer_gpus == 0:
        yield refusal(("deployment", "num_infer_gpus"), "a single-node run needs at least 1")
    per_node = deployment.gpus_per_node
    wanted = (deployment.num_train_gpus or 0) + (deployment.num_infer_gpus or 0)
    if per_node is not None and wanted > per_node:
        yield hint(("deployment",), f"asks for {wanted} GPUs on one node of {per_node}")


def _model_findings(settings: RLConfig, around: Circumstances) -> Findings:
    trainer, orchestrator, inference = settings.trainer, settings.orchestrator, settings.inference
    renderer: Renderer | None = orchestrator.renderer if orchestrator else None
    named: list[tuple[KeyPath, str | None]] = [
        (("model", "name"), settings.model.name if settings.model else None),
        (("trainer", "model", "name"), trainer.model.name if trainer and trainer.model else None),
        (
            ("orchestrator", "model", "name"),
            orchestrator.model.name if orchestrator and orchestrator.model else None,
        ),
        (
            ("inference", "vllm", "model"),
            inference.vllm.model if inference and inference.vllm else None,
        ),
    ]
    for path, name in named:
        yield from model_name_findings(name, path, around, renderer)
    yield from vlm_findings(settings.model, ("model",))
    yield from vlm_findings(trainer.model if trainer else None, ("trainer", "model"))


def _training_findings(group: TrainGroup) -> Findings:
    """Check each source with what it inherits; without sources, the group's own defaults."""
    own = group.source or []
    if not own:
        alone = TrainSource(algo=group.algo, sampling=group.sampling)
        yield from _algorithm_findings(alone, _TRAIN, _TRAIN)
    for index, (source, whole) in enumerate(zip(own, train_sources(group), strict=True)):
        path = (*_TRAIN, "source", index)
        sampled_at = path if source.sampling is not None else _TRAIN
        yield from _algorithm_findings(whole, path if source.algo else _TRAIN, sampled_at)
        if whole.algo is None or whole.algo.type != "sft":
            yield from agent_findings(source.env, path)


def _algorithm_findings(source: TrainSource, path: KeyPath, sampled_at: KeyPath) -> Findings:
    algorithm = source.algo or Algorithm()
    sampling = source.sampling or Sampling()
    here = (*path, "algo")
    yield from top_k_findings(sampling, (*sampled_at, "sampling"))
    if algorithm.type in ("opd", "opsd") and is_truncated(sampling):
        message = f"{algorithm.type} can't train on truncated sampling; unset top_p and top_k"
        yield refusal((*sampled_at, "sampling"), message)
    generator = algorithm.sampling.source if algorithm.sampling else None
    if algorithm.type == "sft":
        if not _is_frozen(generator):
            message = "sft needs a frozen model here, with its name and base_url"
            yield refusal((*here, "sampling", "source"), message)
    elif isinstance(generator, FrozenModel):
        message = f"{algorithm.type} trains on the policy's own samples; only sft takes a model's"
        yield refusal((*here, "sampling", "source"), message)
    if algorithm.type == "opd" and not _is_frozen(algorithm.teacher):
        message = "opd needs a frozen teacher, with its name and base_url; not the policy"
        yield refusal((*here, "teacher"), message)


def _is_frozen(model: object) -> bool:
    return isinstance(model, FrozenModel) and bool(model.name and model.base_url)
