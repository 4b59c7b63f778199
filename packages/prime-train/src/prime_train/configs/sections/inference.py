"""`[inference]`: what the policy answers from. Follows the page "prime-rl/inference"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from prime_train.configs.sections.base import Count, EnvVars, Known, OpenSection, Section

__all__ = [
    "CacheCpu",
    "CacheDisk",
    "CacheOffload",
    "Inference",
    "InferenceDeployment",
    "Router",
    "Server",
    "Vllm",
]


class Vllm(OpenSection):
    """`[inference.vllm]`: arguments of vLLM, under its own names; all of them pass through."""

    model: str | None = None
    tensor_parallel_size: Count | None = None
    data_parallel_size: Count | None = None
    enable_expert_parallel: bool | None = False
    enable_return_routed_experts: bool | None = None
    max_model_len: int | None = None


class Server(Section):
    """`[inference.server]`: the address that clients talk to."""

    port: Count | None = 8000


class Router(Section):
    """`[inference.router]`: spreads requests over the engines."""

    variants: ClassVar[Mapping[str, str]] = {
        "policy": "vllm-router",
        "non_cached_tokens": "llm-d",
        "scorers": "llm-d",
        "prefill_scorer_overrides": "llm-d",
        "decode_scorer_overrides": "llm-d",
    }

    type: Annotated[str, Known("vllm-router", "llm-d")] | None = "vllm-router"
    policy: (
        Annotated[str, Known("sticky_least_loaded", "consistent_hash", "round_robin")] | None
    ) = None
    non_cached_tokens: Count | None = None
    scorers: dict[str, float] | None = None
    prefill_scorer_overrides: dict[str, float] | None = None
    decode_scorer_overrides: dict[str, float] | None = None


class CacheCpu(Section):
    """`[inference.kv_cache_offload.cpu]`: memory for the cache, in bytes."""

    num_bytes: Count | None = None


class CacheDisk(Section):
    """`[inference.kv_cache_offload.disk]`: a folder behind the memory."""

    path: str | None = None


class CacheOffload(Section):
    """`[inference.kv_cache_offload]`: a key-value cache beyond the GPUs. Off by default."""

    type: Annotated[str, Known("native", "mooncake")] | None = None
    cpu: CacheCpu | None = None
    disk: CacheDisk | None = None


class InferenceDeployment(OpenSection):
    """`[inference.deployment]`: nodes of one replica. Hosted runs refuse ``disaggregated``."""

    type: Annotated[str, Known("single_node", "multi_node", "disaggregated")] | None = None
    num_nodes: Count | None = None


class Inference(Section):
    """`[inference]`: an empty table runs it with its defaults."""

    vllm: Vllm | None = None
    server: Server | None = None
    backend_port: Count | None = 8100
    router: Router | None = None
    kv_cache_offload: CacheOffload | None = None
    deployment: InferenceDeployment | None = None
    enable_return_sampling_mask: bool | None = None
    env_vars: EnvVars | None = None
