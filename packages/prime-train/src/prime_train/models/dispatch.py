"""The request that dispatches a run."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from prime_core.models import RequestModel

__all__ = ["CreateRunRequest"]


class CreateRunRequest(RequestModel):
    """A hosted run to dispatch; `build_request` makes it of a config.

    Follows the page "hosted-training/hosted-rl".

    Attributes:
        config: the config of prime-rl, without the keys that steer the dispatch.
        mode: ``sft``; an RL run has none.
        name: display name.
        team_id: owning team; by default the client's.
        image_tag: build of the prime-rl image; ``main`` by default.
        gpu_type: GPU to run on, such as ``H200_141GB``; the platform picks one by default.
        volume: volume to mount at ``/volume``.
        source_ref: branch, tag or commit of prime-rl to lay over the image; restricted.
        resume_from: paused run to continue from.
        wandb_api_key: key for Weights & Biases. Left out of `repr`.
        hf_token: token for Hugging Face. Left out of `repr`.
        secrets: further variables of all pods. Left out of `repr`.
    """

    omits_null: ClassVar[bool] = True

    config: dict[str, object] = Field(repr=False)
    mode: Literal["rl", "sft"] | None = None
    name: str | None = None
    team_id: str | None = Field(default=None, alias="teamId")
    image_tag: str | None = Field(default=None, alias="imageTag")
    gpu_type: str | None = Field(default=None, alias="gpuType")
    volume: str | None = None
    source_ref: str | None = Field(default=None, alias="sourceRef")
    resume_from: str | None = Field(default=None, alias="resumeFrom")
    wandb_api_key: str | None = Field(default=None, alias="wandbApiKey", repr=False)
    hf_token: str | None = Field(default=None, alias="hfToken", repr=False)
    secrets: dict[str, str] | None = Field(default=None, repr=False)
