"""Keys, words and types of a config are checked against what is documented."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from prime_train.configs.inheritance import eval_sources, train_sources
from prime_train.configs.loading import TrainConfig, load_config
from prime_train.configs.sections.base import Section
from prime_train.configs.sections.rl import RLConfig
from prime_train.configs.sections.sft import SFTConfig
from prime_train.errors import ConfigIssue, InvalidConfigError


def messages(config: TrainConfig) -> dict[str, str]:
    return {issue.key: issue.message for issue in config.warnings}


def test_an_unknown_key_is_kept_and_reported_with_what_may_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "rl.toml"
    path.write_text("[trainer.optim]\nlr = 1e-6\nweight_decy = 0.1\n\n[zzz]\nx = 1\n")
    config = load_config(path)
    assert config.to_dict()["zzz"] == {"x": 1}
    first, second = config.warnings
    assert first == ConfigIssue(
        "is not a documented key; did you mean weight_decay?",
        "trainer.optim.weight_decy",
        str(path),
        3,
        "warning",
    )
    assert (second.key, second.line) == ("zzz", 5)
    assert str(first).startswith(f"{path}:3: trainer.optim.weight_decy: is not")


def test_strict_refuses_what_is_unknown() -> None:
    source = {"trainer": {"optim": {"type": "adam", "lrr": 1}}, "a": {"b": 1}}
    assert len(load_config(source).warnings) == 3
    with pytest.raises(InvalidConfigError) as caught:
        load_config(source, strict=True)
    assert {issue.key for issue in caught.value.issues} == {
        "trainer.optim.type",
        "trainer.optim.lrr",
        "a",
    }


def test_keys_of_others_are_not_reported() -> None:
    config = load_config(
        {
            "inference": {"vllm": {"headless": True}},
            "orchestrator": {
                "renderer": {"name": "qwen3", "enable_thinking": False},
                "train": {
                    "source": [
                        {
                            "env": {
                                "n": 4,
                                "taskset": {"id": "a", "difficulty": "hard"},
                                "solver": {"harness": {"id": "null"}},
                                "agent": {"harness": {"id": "codex", "version": "1"}},
                            },
                            "args": {"dataset_name": "x"},
                        }
                    ]
                },
            },
        },
        strict=True,
    )
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("source", "key", "words"),
    [
        ({"trainer": {"model": {"cp_style": "ulyses"}}}, "trainer.model.cp_style", "ulysses?"),
        ({"deployment": {"type": "multi-node"}}, "deployment.type", "did you mean multi_node?"),
        (
            {"trainer": {"model": {"fusions": {"enabled": ["gate_up", "kqv"]}}}},
            "trainer.model.fusions.enabled.1",
            "did you mean qkv?",
        ),
        ({"trainer": {"loss": {"ratio_low": 0.1}}}, "trainer.loss.ratio_low", '"icepop" alone'),
        (
            {"trainer": {"loss": {"type": "icepop", "eps": 0.1}}},
            "trainer.loss.eps",
            'type = "ipo" alone',
        ),
        (
            {"orchestrator": {"train": {"source": [{"algo": {"type": "grpo", "decay": 0.5}}]}}},
            "orchestrator.train.source.0.algo.decay",
            'type = "rae" alone',
        ),
        (
            {"orchestrator": {"train": {"algo": {"type": "echo", "roles": {"tool": {"alfa": 1}}}}}},
            "orchestrator.train.algo.roles.tool.alfa",
            "did you mean alpha?",
        ),
    ],
)
def test_a_word_or_key_that_does_not_fit_is_reported(
    source: dict[str, object], key: str, words: str
) -> None:
    reported = messages(load_config(source))
    assert list(reported) == [key]
    assert words in reported[key]


def test_a_source_may_set_what_goes_with_its_group_s_algorithm() -> None:
    source = {"algo": {"decay": 0.5}}
    config = load_config({"orchestrator": {"train": {"algo": {"type": "rae"}, "source": [source]}}})
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ({"max_steps": "many"}, "max_steps"),
        ({"max_steps": -1}, "max_steps"),
        ({"max_steps": 1.5}, "max_steps"),
        ({"name": 5}, "name"),
        ({"trainer": {"optim": []}}, "trainer.optim"),
        ({"trainer": {"model": {"ep": "many"}}}, "trainer.model.ep"),
        ({"env_vars": {"A": 1}}, "env_vars.A"),
        (
            {"orchestrator": {"train": {"source": [{"name": "a"}, {"ratio": "x"}]}}},
            "orchestrator.train.source.1.ratio",
        ),
        ({"orchestrator": {"train": {"source": {"name": "a"}}}}, "orchestrator.train.source"),
    ],
)
def test_a_wrong_type_is_refused_at_its_key(source: dict[str, object], key: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        load_config(source)
    assert [issue.key for issue in caught.value.issues] == [key]


def test_no_message_quotes_a_value() -> None:
    secret = "hunter2"
    source: dict[str, object] = {
        "max_steps": secret,
        "env_vars": {"A": [secret]},
        "deployment": {"type": secret, "num_train_gpus": secret},
        "volume": f"{secret}!",
        "source_ref": f"..{secret}",
        "image_tag": [secret],
        "trainer": {"model": {"ep": secret, "fused_lm_head_token_chunk_size": secret}},
    }
    with pytest.raises(InvalidConfigError) as caught:
        load_config(source, strict=True)
    assert len(caught.value.issues) == 9
    assert secret not in str(caught.value)
    assert secret not in repr(pickle.loads(pickle.dumps(caught.value)).issues)
    assert secret not in repr(load_config({"env_vars": {"A": secret}}))


def test_all_wrong_types_and_unknown_keys_come_in_one_error() -> None:
    source = {"max_steps": "x", "trainer": {"optim": {"lr": "y"}}, "strange": 1}
    with pytest.raises(InvalidConfigError) as caught:
        load_config(source, strict=True)
    assert {issue.key for issue in caught.value.issues} == {
        "max_steps",
        "trainer.optim.lr",
        "strange",
    }


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), datetime.date(2026, 1, 1), datetime.time(1), {1, 2}, b"x"],
)
def test_what_json_can_t_hold_is_refused_at_its_key(value: object) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        load_config({"extra": {"list": [1, value]}})
    assert caught.value.issues[0].key == "extra.list.1"


def test_the_string_none_switches_off_and_is_sent_as_it_stands() -> None:
    config = load_config(
        {"ckpt": {"interval": 5}, "trainer": {"model": {"ac": {"mode": "full"}}}},
        {"ckpt": "None", "trainer": {"model": {"ac": None}}},
        overrides=["inference.vllm.max_model_len=None"],
    )
    assert isinstance(config.settings, RLConfig)
    assert config.settings.ckpt is None
    assert config.settings.trainer is not None
    assert config.settings.trainer.model is not None
    assert config.settings.trainer.model.ac is None
    assert config.to_dict() == {
        "ckpt": "None",
        "trainer": {"model": {"ac": "None"}},
        "inference": {"vllm": {"max_model_len": "None"}},
    }


def test_an_overlay_switches_on_again() -> None:
    config = load_config({"ckpt": "None"}, overrides=["ckpt.interval=5"])
    assert config.settings.ckpt is not None
    assert config.settings.ckpt.interval == 5


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        ({}, "rl"),
        ({"data": {}}, "sft"),
        ({"data": "None"}, "rl"),
        ({"data": {}, "trainer": {}}, "rl"),
        ({"data": {}, "orchestrator": {}}, "rl"),
        ({"data": {}, "orchestrator": "None"}, "sft"),
    ],
)
def test_the_mode_follows_from_the_tables(source: dict[str, object], mode: str) -> None:
    assert load_config(source).mode == mode
    assert load_config(source, mode="sft").mode == "sft"
    assert load_config(source, mode="rl").mode == "rl"


def test_the_typed_view_can_t_be_mistaken_for_what_is_sent() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_config({}).settings.max_steps = 5  # type: ignore[misc]


def test_what_is_given_out_is_a_copy() -> None:
    source = {"env_vars": {"A": "1"}}
    config = load_config(source)
    source["env_vars"]["A"] = "2"
    config.to_dict().clear()
    env_vars = config.to_dict()["env_vars"]
    assert isinstance(env_vars, dict)
    env_vars["A"] = "3"
    assert config.to_dict() == {"env_vars": {"A": "1"}}


def test_old_keys_of_the_orchestrator_are_left_out_or_translated(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text(
        "[orchestrator]\nbatch_size = 8\ntrajectory_strategy = 'x'\nbuffer = {}\n"
        "[orchestrator.eval]\neval_base_model = false\n"
    )
    config = load_config(path)
    assert config.to_dict() == {
        "orchestrator": {"batch_size": 8, "eval": {"skip_first_step": True}}
    }
    assert [(issue.key, issue.line) for issue in config.warnings] == [
        ("orchestrator.trajectory_strategy", 3),
        ("orchestrator.buffer", 4),
        ("orchestrator.eval.eval_base_model", 6),
    ]
    kept = load_config(path, {"orchestrator": {"eval": {"skip_first_step": False}}})
    assert kept.to_dict()["orchestrator"] == {"batch_size": 8, "eval": {"skip_first_step": False}}


def test_sources_inherit_key_by_key_but_not_across_types() -> None:
    config = load_config(
        {
            "orchestrator": {
                "train": {
                    "group_size": 16,
                    "sampling": {"temperature": 0.5, "top_k": 5},
                    "algo": {"type": "grpo", "loss_aggregation": "prompt"},
                    "source": [
                        {"name": "a", "sampling": {"top_k": 7}, "algo": {"type": "echo"}},
                        {"name": "b", "group_size": 2, "algo": {"length_weighted_baseline": True}},
                    ],
                },
                "eval": {"interval": 5, "source": [{"name": "a"}, {"name": "b", "interval": 7}]},
            }
        }
    )
    assert isinstance(config.settings, RLConfig)
    orchestrator = config.settings.orchestrator
    assert orchestrator is not None
    assert orchestrator.train is not None
    assert orchestrator.eval is not None
    first, second = train_sources(orchestrator.train)
    assert (first.group_size, second.group_size) == (16, 2)
    assert first.sampling is not None
    assert (first.sampling.temperature, first.sampling.top_k) == (0.5, 7)
    assert first.algo is not None
    assert (first.algo.type, first.algo.loss_aggregation) == ("echo", None)
    assert second.algo is not None
    assert (second.algo.type, second.algo.loss_aggregation) == ("grpo", "prompt")
    assert [source.interval for source in eval_sources(orchestrator.eval)] == [5, 7]


def sections(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """All sections that a config's class is made of."""
    if model not in seen:
        seen.add(model)
        for field in model.model_fields.values():
            waiting: list[object] = [field.annotation]
            while waiting:
                part = waiting.pop()
                waiting += get_args(part)
                if isinstance(part, type) and not get_args(part) and issubclass(part, BaseModel):
                    sections(part, seen)
    return seen


def test_a_variant_s_fields_are_fields_and_every_section_has_a_purpose() -> None:
    found = sections(SFTConfig, sections(RLConfig, set()))
    assert len(found) > 50
    for model in found:
        assert issubclass(model, Section)
        assert set(model.variants) <= set(model.model_fields), model
        assert model.__doc__


def test_no_source_at_all_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="at least one"):
        load_config()
    with pytest.raises(TypeError, match="keys of a config are strings"):
        load_config({1: 2})  # type: ignore[dict-item]
