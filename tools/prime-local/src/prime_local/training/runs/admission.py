"""What a dispatch is refused for at once, before anything is reserved."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError

MAX_GPUS = 64
SOURCE_REFUSED = "sourceRef is restricted: this account may not overlay sources"
_MAX_SECRETS_BYTES = 256 * 1024
_RESERVED_NAMES = ("PRIME_API_KEY", "WANDB_API_KEY", "HF_TOKEN")
_GPUS_PER_NODE = 8
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_ON_VOLUME = re.compile(rf"/volume(/{_PART})+")
_REPOSITORY = re.compile(rf"{_PART}(/{_PART})?")
_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)(?:\.dev(\d+))?")
# The first image that can be paused.
_FIRST_PAUSABLE = (0, 10, 1, 11)
_RELEASED = 1_000_000


@dataclass(frozen=True)
class Plan:
    """What a request asks for, once it is found right.

    Args:
        config: what is kept of the config.
        environments: the sources that it trains on, or that SFT evaluates with.
        gpus: how many it needs.
    """

    mode: Literal["rl", "sft"]
    config: JsonObject
    model: str
    environments: list[JsonObject]
    max_steps: int | None
    gpus: int


def examine(asked: JsonObject, *, has_volume: bool, is_known: Callable[[str], bool]) -> Plan:
    """Return what a `CreateTrainingRunRequest` of the contract comes to.

    Args:
        asked: the request.
        has_volume: whether the run mounts a volume, its own or that of the run it goes on with.
        is_known: says whether the hub has an environment.

    Raises:
        PlatformError: 400 or 403.
    """
    if asked.get("sourceRef"):
        raise PlatformError(403, SOURCE_REFUSED)
    check_secrets(asked)
    config = dict(asked["config"])
    if not asked.get("wandbApiKey"):
        config.pop("wandb", None)
    mode: Literal["rl", "sft"] = "sft" if asked.get("mode") == "sft" else "rl"
    _check_shapes(config)
    model = _model(config, has_volume)
    if mode == "sft":
        gpus = _sft_gpus(config, has_volume)
        sources = sources_of(config.get("eval"))
    else:
        gpus = _rl_gpus(config)
        sources = sources_of(table(config, "orchestrator", "train"))
    if gpus > MAX_GPUS:
        raise _refused(f"The run needs {gpus} GPUs; the most is {MAX_GPUS}")
    environments = [_environment(each, is_known) for each in sources]
    return Plan(mode, config, model, environments, _max_steps(config), gpus)


def check_secrets(asked: JsonObject) -> None:
    """Check the secrets of a create or a resume.

    Raises:
        PlatformError: 400.
    """
    secrets = asked.get("secrets") or {}
    for name in _RESERVED_NAMES:
        if name in secrets:
            raise _refused(f"{name} is a reserved name of a secret")
    if sum(len(value.encode()) for value in secrets.values()) > _MAX_SECRETS_BYTES:
        raise _refused(f"The secrets are more than {_MAX_SECRETS_BYTES} bytes in all")


def can_pause(image_tag: str) -> bool:
    """Say whether an image knows how to pause: v0.10.1.dev11 and later, and what has no number."""
    found = _VERSION.fullmatch(image_tag)
    if found is None:
        return True
    numbers = [int(each) for each in found.groups()[:3]]
    return (*numbers, int(found[4] or _RELEASED)) >= _FIRST_PAUSABLE


def table(config: JsonObject, *path: str) -> JsonObject | None:
    """Return a table of a config; None when it is absent or switched off."""
    found: object = config
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def sources_of(group: JsonObject | None) -> list[JsonObject]:
    """Return the sources of a group, such as `orchestrator.train`."""
    listed = (group or {}).get("source")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _check_shapes(config: JsonObject) -> None:
    flat = (table(config, "orchestrator", "train") or {}).get("env")
    if isinstance(flat, list) and any("id" in each for each in flat if isinstance(each, dict)):
        raise _refused(
            "[[orchestrator.train.env]] was removed: use [[orchestrator.train.source]] with "
            "env.taskset"
        )
    if "k8s" in config:
        raise _refused("[k8s] is set by the platform: remove it")
    if config.get("clean") is True:
        raise _refused("clean = true is not allowed on the platform")
    if (table(config, "inference", "deployment") or {}).get("type") == "disaggregated":
        raise _refused("inference.deployment.type = 'disaggregated' is not supported")


def _model(config: JsonObject, has_volume: bool) -> str:
    name = (table(config, "model") or {}).get("name")
    if not isinstance(name, str):
        raise _refused("model.name is required")
    if name.startswith("/"):
        if not _ON_VOLUME.fullmatch(name):
            raise _refused(f"model.name {name!r} is no path below /volume")
        if not has_volume:
            raise _refused("model.name on /volume requires a volume")
    elif not _REPOSITORY.fullmatch(name):
        raise _refused(f"model.name {name!r} is no repository")
    return name


def _rl_gpus(config: JsonObject) -> int:
    fake = table(config, "trainer", "data", "fake") is not None
    serves = table(config, "inference") is not None
    deployment = table(config, "deployment") or {}
    single = deployment.get("type", "single_node") == "single_node"
    if single and not fake and (not serves or deployment.get("num_infer_gpus") == 0):
        raise _refused("single-node RL needs [inference] with at least one GPU")
    return _gpus(config, serves=serves or not fake)


def _sft_gpus(config: JsonObject, has_volume: bool) -> int:
    data = table(config, "data") or {}
    evaluates, serves = (table(config, name) is not None for name in ("eval", "inference"))
    if serves and not evaluates:
        raise _refused(
            "[inference] is only used for online evals: add an [eval] block or remove it"
        )
    if data.get("name") is not None and data.get("type") != "fake" and not has_volume:
        raise _refused("data.name requires a volume")
    deployment = table(config, "deployment") or {}
    gpus = _gpus(config, serves=evaluates)
    if evaluates:
        _check_evaluating(config, deployment, gpus)
    return gpus


def _check_evaluating(config: JsonObject, deployment: JsonObject, gpus: int) -> None:
    per_node = deployment.get("gpus_per_node", _GPUS_PER_NODE)
    if deployment.get("type", "single_node") == "single_node":
        if gpus > per_node:
            raise _refused(f"num_train_gpus + num_infer_gpus is {gpus}, above {per_node} of a node")
    elif table(config, "inference", "router") is None:
        raise _refused("multi-node evals need at least one inference node and [inference.router]")


def _gpus(config: JsonObject, *, serves: bool) -> int:
    deployment = table(config, "deployment") or {}

    def count(name: str, default: int | None) -> int:
        value = deployment.get(name, default)
        if type(value) is not int or value < 0:
            raise _refused(f"deployment.{name} is a whole number of at least 0")
        return value

    if deployment.get("type", "single_node") == "single_node":
        return count("num_train_gpus", 1) + (count("num_infer_gpus", 1) if serves else 0)
    if deployment["type"] != "multi_node":
        raise _refused("deployment.type is single_node or multi_node")
    nodes = count("num_train_nodes", None)
    if serves:
        served_on = (table(config, "inference", "deployment") or {}).get("num_nodes")
        inference = count("num_infer_nodes", served_on)
        if not inference:
            raise _refused("deployment.num_infer_nodes is at least 1")
        nodes += inference * count("num_infer_replicas", 1)
    return nodes * count("gpus_per_node", _GPUS_PER_NODE)


def _max_steps(config: JsonObject) -> int | None:
    steps = config.get("max_steps")
    if steps is None or steps == "None":
        return None
    if type(steps) is not int or steps < 1:
        raise _refused("max_steps is a whole number of at least 1")
    return steps


def _environment(source: JsonObject, is_known: Callable[[str], bool]) -> JsonObject:
    env = table(source, "env") or {}
    taskset = (table(env, "taskset") or {}).get("id")
    # Those without an owner are bundled with the image.
    if isinstance(taskset, str) and "/" in taskset and not is_known(taskset.partition("@")[0]):
        raise _refused(f"Environment {taskset!r} was not found")
    return {"name": source.get("name") or taskset, **env}


def _refused(reason: str) -> PlatformError:
    return PlatformError(400, reason)
