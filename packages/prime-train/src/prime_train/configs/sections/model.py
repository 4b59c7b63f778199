"""The model that is trained, and how: `[trainer.model]` of RL, `[model]` of SFT.

Follows the pages "prime-rl/scaling" and "prime-rl/advanced".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from prime_train.configs.sections.base import Count, Known, Section

__all__ = [
    "ActivationCheckpointing",
    "ActivationOffloading",
    "Compile",
    "Fusions",
    "Lora",
    "ModelDebug",
    "Moe",
    "MoeCompute",
    "MoeDispatch",
    "Quantization",
    "SftModel",
    "TrainerModel",
    "Vlm",
]


class ActivationCheckpointing(Section):
    """`ac`: what is computed again in the backward pass. On by default.

    Attributes:
        mode: ``full`` or ``selective``.
        freq: checkpoint every so many layers.
        targets: operators or namespaces that selective mode keeps.
    """

    mode: Annotated[str, Known("full", "selective")] | None = None
    freq: Count | None = None
    targets: list[str] | None = None


class ActivationOffloading(Section):
    """`ac_offloading`: activations on the CPU. On by default."""

    max_inflight_activations: Count | None = 5


class Compile(Section):
    """`compile`: each block as compiled code. On by default."""

    fullgraph: bool | None = False


class Lora(Section):
    """`lora`: train an adapter in place of the weights. Off by default."""

    rank: Count | None = None
    alpha: float | None = None
    dropout: float | None = None
    target_modules: list[str] | None = None


class Vlm(Section):
    """`vlm`: a model that sees images. Off by default; needs bfloat16 dtypes."""

    vision_encoder_attr: str | None = None
    language_model_attr: str | None = None
    freeze_vision_encoder: bool | None = True


class MoeDispatch(Section):
    """`moe.dispatch`: how tokens travel to their experts."""

    variants: ClassVar[Mapping[str, str]] = {
        "transport": "torch",
        "num_sms": "deepep",
        "token_chunk_size": "deepep",
    }

    type: Annotated[str, Known("torch", "deepep")] | None = "torch"
    transport: Annotated[str, Known("bf16", "mxfp8")] | None = None
    num_sms: Count | None = None
    token_chunk_size: Count | None = None


class MoeCompute(Section):
    """`moe.compute`: how experts compute, and in which layers.

    Attributes:
        apply_to: ``all``, the first percent of the layers such as ``85%``, or their indices.
    """

    variants: ClassVar[Mapping[str, str]] = {"backend": "bf16", "recipe": "mxfp8"}

    type: Annotated[str, Known("bf16", "deepgemm_fp8", "mxfp8")] | None = "bf16"
    backend: Annotated[str, Known("torch", "sonicmoe")] | None = None
    apply_to: str | list[int] | None = "all"
    recipe: str | None = None


class Moe(Section):
    """`moe`: mixture-of-experts layers."""

    dispatch: MoeDispatch | None = None
    compute: MoeCompute | None = None


class Quantization(Section):
    """`quantization`: precision of the dense linear layers."""

    variants: ClassVar[Mapping[str, str]] = {"recipe": "mxfp8"}

    type: Annotated[str, Known("fp8", "mxfp8")] | None = None
    recipe: str | None = None


class Fusions(Section):
    """`fusions`: parameters that are kept in one tensor; an empty list switches them off."""

    enabled: list[Annotated[str, Known("gate_up", "qkv")]] | None = None
    shard_fused_on_dim1: bool | None = None


class TrainerModel(Section):
    """`[trainer.model]`: the trainer's model and its parallelism.

    Attributes:
        name: Hugging Face id, or an absolute path below ``/volume``.
        cp: degree of context parallelism.
        ep: degree of expert parallelism, or ``auto``.
        dp_replicate: replicas of the sharded model.
        fused_lm_head_token_chunk_size: tokens at a time, or ``disabled``.
        freeze_moe_router: keep the router; by default RL does, SFT does not.
    """

    name: str | None = None
    attn: (
        Annotated[str, Known("auto", "flash_attention_2", "flash_attention_3", "flash_attention_4")]
        | None
    ) = "auto"
    cp: Count | None = None
    cp_style: Annotated[str, Known("ulysses", "ring")] | None = None
    ep: Count | Literal["auto"] | None = "auto"
    dp_replicate: Count | None = None
    reshard_after_forward: bool | None = True
    offload: Annotated[str, Known("optimizer", "full", "none")] | None = "optimizer"
    fused_lm_head_token_chunk_size: Count | Literal["disabled"] | None = 8192
    freeze_moe_router: bool | None = None
    moe_router_dtype: str | None = None
    optimization_dtype: str | None = None
    reduce_dtype: str | None = None
    ac: ActivationCheckpointing | None = Field(default_factory=ActivationCheckpointing)
    ac_offloading: ActivationOffloading | None = Field(default_factory=ActivationOffloading)
    compile: Compile | None = Field(default_factory=Compile)
    lora: Lora | None = None
    vlm: Vlm | None = None
    moe: Moe | None = None
    quantization: Quantization | None = None
    fusions: Fusions | None = None


class ModelDebug(Section):
    """`[model.debug]` of SFT."""

    force_balanced_routing: bool | None = None


class SftModel(TrainerModel):
    """`[model]` of SFT: what `TrainerModel` has, and a little more."""

    impl: str | None = None
    optim_cpu_offload: bool | None = None
    debug: ModelDebug | None = None
