"""What the dispatch of a run is refused for, each rule with a config that is right but for it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from prime_local.errors import PlatformError
from prime_local.training.runs.admission import MAX_GPUS, can_pause, examine

Json = dict[str, Any]
MODEL: Json = {"name": "Qwen/Qwen3-4B"}
SOURCE: Json = {"env": {"taskset": {"id": "owner/known"}}}
RL: Json = {"model": MODEL, "orchestrator": {"train": {"source": [SOURCE]}}, "inference": {}}
SFT: Json = {"model": MODEL, "data": {"name": "datasets/x"}}
EVALUATED: Json = {**SFT, "eval": {"source": [SOURCE]}, "inference": {}}


def plan(config: Json, *, volume: bool = True, **asked: Any) -> Any:
    body = {"config": copy.deepcopy(config), **asked}
    return examine(body, has_volume=volume, is_known=lambda slug: slug == "owner/known")


def with_deployment(config: Json, **deployment: Any) -> Json:
    return {**config, "deployment": deployment}


@pytest.mark.parametrize(
    ("config", "asked", "gpus"),
    [
        (RL, {}, 2),
        (with_deployment(RL, num_train_gpus=4, num_infer_gpus=2), {}, 6),
        ({"model": MODEL, "trainer": {"data": {"fake": {}}}}, {}, 1),
        (with_deployment(RL, type="multi_node", num_train_nodes=2, num_infer_nodes=2), {}, 32),
        (
            with_deployment(
                RL,
                type="multi_node",
                num_train_nodes=1,
                num_infer_nodes=1,
                num_infer_replicas=3,
                gpus_per_node=4,
            ),
            {},
            16,
        ),
        (SFT, {"mode": "sft"}, 1),
        (EVALUATED, {"mode": "sft"}, 2),
        (with_deployment(SFT, type="multi_node", num_train_nodes=8), {"mode": "sft"}, MAX_GPUS),
    ],
)
def test_gpus_are_counted(config: Json, asked: Json, gpus: int) -> None:
    assert plan(config, **asked).gpus == gpus


@pytest.mark.parametrize(
    ("config", "asked", "reason"),
    [
        ({**RL, "orchestrator": {"train": {"env": [{"id": "x"}]}}}, {}, "removed"),
        ({**RL, "k8s": {}}, {}, "k8s"),
        ({**RL, "clean": True}, {}, "clean"),
        ({**RL, "inference": {"deployment": {"type": "disaggregated"}}}, {}, "disaggregated"),
        ({**RL, "inference": "None"}, {}, "needs \\[inference\\]"),
        (with_deployment(RL, num_infer_gpus=0), {}, "needs \\[inference\\]"),
        (with_deployment(RL, num_train_gpus=MAX_GPUS), {}, "most is 64"),
        (with_deployment(RL, num_train_gpus="two"), {}, "num_train_gpus"),
        (with_deployment(RL, type="multi_node"), {}, "num_train_nodes"),
        (with_deployment(RL, type="many"), {}, "deployment.type"),
        ({**RL, "model": {}}, {}, "model.name"),
        ({**RL, "model": {"name": "a b"}}, {}, "repository"),
        ({**RL, "model": {"name": "/weights/x"}}, {}, "/volume"),
        ({**RL, "max_steps": 0}, {}, "max_steps"),
        (
            {**RL, "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "o/x@1"}}}]}}},
            {},
            "'o/x@1' was not found",
        ),
        ({**SFT, "inference": {}}, {"mode": "sft"}, "add an \\[eval\\] block"),
        (with_deployment(EVALUATED, gpus_per_node=1), {"mode": "sft"}, "above 1"),
        (
            with_deployment(EVALUATED, type="multi_node", num_train_nodes=1, num_infer_nodes=1),
            {"mode": "sft"},
            "router",
        ),
        (
            with_deployment(EVALUATED, type="multi_node", num_train_nodes=1),
            {"mode": "sft"},
            "num_infer_nodes",
        ),
        (RL, {"secrets": {"HF_TOKEN": "x"}}, "reserved"),
        (RL, {"secrets": {f"N{n}": "x" * 32_000 for n in range(9)}}, "bytes in all"),
    ],
)
def test_a_wrong_config_is_refused_with_a_reason(config: Json, asked: Json, reason: str) -> None:
    with pytest.raises(PlatformError, match=reason) as refused:
        plan(config, **asked)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("config", "asked"),
    [({**RL, "model": {"name": "/volume/models/x"}}, {}), (SFT, {"mode": "sft"})],
)
def test_what_is_on_a_volume_needs_one(config: Json, asked: Json) -> None:
    assert plan(config, **asked).model == config["model"]["name"]
    with pytest.raises(PlatformError, match="volume"):
        plan(config, volume=False, **asked)


def test_sources_are_not_overlaid() -> None:
    with pytest.raises(PlatformError, match="restricted") as refused:
        plan(RL, sourceRef="feature/x")
    assert refused.value.status == 403


def test_weights_and_biases_need_a_key() -> None:
    config = {**RL, "wandb": {"project": "p"}}
    assert "wandb" not in plan(config).config
    assert plan(config, wandbApiKey="key").config["wandb"] == {"project": "p"}


@pytest.mark.parametrize(
    ("tag", "able"),
    [
        ("main", True),
        ("v0.10.1.dev11", True),
        ("v0.10.1.dev10", False),
        ("v0.10.1", True),
        ("v0.10.0", False),
        ("v1.0.0.dev1", True),
    ],
)
def test_older_images_cannot_pause(tag: str, able: bool) -> None:
    assert can_pause(tag) is able
