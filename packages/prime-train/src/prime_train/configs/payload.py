"""What a config makes of the request that dispatches it.

Follows the page "hosted-training/hosted-rl", "Launching a run".
"""

from __future__ import annotations

from typing import cast

from prime_core.secret import Secret
from prime_train.configs.composition import ConfigSource
from prime_train.configs.loading import MAX_GPUS, Mode, TrainConfig, load_config, raise_errors
from prime_train.configs.secrets import RunSecrets, given_secrets
from prime_train.errors import ConfigIssue
from prime_train.models.dispatch import CreateRunRequest

__all__ = ["build_payload_from_toml", "build_request"]


def build_request(
    config: TrainConfig,
    *,
    name: str | None = None,
    team_id: str | None = None,
    image_tag: str | None = None,
    gpu_type: str | None = None,
    volume: str | None = None,
    source_ref: str | None = None,
    resume_from: str | None = None,
    secrets: RunSecrets | None = None,
    gpu_cap: int = MAX_GPUS,
) -> CreateRunRequest:
    """Make the request that dispatches a config; what is given here wins over the file.

    Args:
        config: the config.
        name: display name.
        team_id: owning team; by default the client's.
        image_tag: build of the prime-rl image.
        gpu_type: GPU to run on, such as ``H200_141GB``.
        volume: volume to mount at ``/volume``.
        source_ref: branch, tag or commit of prime-rl to lay over the image.
        resume_from: paused run to continue from; its volume is mounted.
        secrets: secrets of the run; without a key for Weights & Biases ``[wandb]`` is left out.
        gpu_cap: GPUs that the run may hold: 64, or the account's cap when it is lower.

    Returns:
        The request.

    Raises:
        InvalidConfigError: the platform would refuse it; every issue is listed.
    """
    secrets = given_secrets(secrets)
    knobs = config.knobs.overridden(
        image_tag=image_tag, gpu_type=gpu_type, volume=volume, source_ref=source_ref
    )
    issues = [
        ConfigIssue(message, key) for key, message in (*knobs.problems(), *secrets.problems())
    ]
    issues += config.findings(volume=knobs.volume, resume_from=resume_from, gpu_cap=gpu_cap)
    raise_errors(issues)
    table = config.to_dict()
    if not secrets.wandb_api_key:
        table.pop("wandb", None)
    given: dict[str, object] = {
        "config": table,
        "mode": "sft" if config.mode == "sft" else None,
        "name": name or config.name,
        "team_id": team_id,
        "image_tag": knobs.image_tag,
        "gpu_type": knobs.gpu_type,
        "volume": knobs.volume,
        "source_ref": knobs.source_ref,
        "resume_from": resume_from,
        "wandb_api_key": secrets.wandb_api_key and secrets.wandb_api_key.reveal(),
        "hf_token": secrets.hf_token and secrets.hf_token.reveal(),
        "secrets": {key: value.reveal() for key, value in secrets.values.items()} or None,
    }
    return CreateRunRequest.model_validate(
        {key: value for key, value in given.items() if value is not None}
    )


def build_payload_from_toml(
    cfg: ConfigSource | TrainConfig,
    *,
    name: str | None = None,
    team_id: str | None = None,
    image_tag: str | None = None,
    wandb_api_key: str | None = None,
    hf_token: str | None = None,
    gpu_type: str | None = None,
    volume: str | None = None,
    mode: Mode | None = None,
    source_ref: str | None = None,
    resume_from: str | None = None,
) -> dict[str, object]:
    """Make the body of the request that dispatches a config, in the platform's own names.

    `build_request` gives the same typed, and takes secrets of any name.

    Args:
        cfg: a TOML file, what it parses to, or a loaded config.
        name: display name.
        team_id: owning team.
        image_tag: build of the prime-rl image.
        wandb_api_key: key for Weights & Biases; without one ``[wandb]`` is left out.
        hf_token: token for Hugging Face.
        gpu_type: GPU to run on, such as ``H200_141GB``.
        volume: volume to mount at ``/volume``.
        mode: ``rl`` or ``sft``; by default as `load_config` finds it. A loaded config has its own.
        source_ref: branch, tag or commit of prime-rl to lay over the image.
        resume_from: paused run to continue from.

    Returns:
        The body. It holds the keys in the open: do not log it.

    Raises:
        InvalidConfigError: the config is wrong, or the platform would refuse it.
    """
    config = cfg if isinstance(cfg, TrainConfig) else load_config(cfg, mode=mode)
    request = build_request(
        config,
        name=name,
        team_id=team_id,
        image_tag=image_tag,
        gpu_type=gpu_type,
        volume=volume,
        source_ref=source_ref,
        resume_from=resume_from,
        secrets=RunSecrets(_secret(wandb_api_key), _secret(hf_token)),
    )
    return cast("dict[str, object]", request.model_dump(by_alias=True, exclude_unset=True))


def _secret(value: str | None) -> Secret | None:
    return Secret(value) if value else None
