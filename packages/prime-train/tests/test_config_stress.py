"""Whatever a config holds, it is read or refused by name; nothing else comes out."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import unhurried

from prime_core.models import encode_request
from prime_train.configs.composition import ConfigSource
from prime_train.configs.estimates import estimate
from prime_train.configs.loading import TrainConfig, load_config
from prime_train.configs.payload import build_request
from prime_train.configs.values import KeyPath, Table, Value
from prime_train.errors import InvalidConfigError

WHOLE: Table = {
    "name": "whole",
    "max_steps": 10,
    "seq_len": 2048,
    "volume": "research",
    "env_vars": {"A": "1"},
    "ckpt": {"interval": 5, "keep_last": 2, "keep_interval": 5},
    "model": {"name": "/volume/models/qwen"},
    "deployment": {"type": "multi_node", "num_train_nodes": 1, "num_infer_nodes": 2},
    "trainer": {
        "model": {"ep": 8, "ac": {"mode": "full"}, "vlm": {}, "lora": {"target_modules": ["q"]}},
        "optim": {"type": "adamw", "lr": 1e-6},
        "loss": {"type": "custom", "import_path": "a.b", "kwargs": {"c": 1}},
    },
    "orchestrator": {
        "batch_size": 64,
        "renderer": {"name": "prime-qwen3"},
        "train": {
            "group_size": 8,
            "sampling": {"top_p": 0.9, "max_tokens": 5},
            "algo": {"type": "echo", "roles": {"tool": {"alpha": 0.1}}},
            "source": [
                {"name": "a", "env": {"taskset": {"id": "a"}, "agent": {"harness": {"id": "b"}}}},
                {"name": "b", "algo": {"type": "opd", "teacher": {"name": "t", "base_url": "u"}}},
            ],
        },
        "eval": {"interval": 5, "env": {"timeout": {"episode": 5}}, "source": [{"name": "a"}]},
    },
    "inference": {"vllm": {"tensor_parallel_size": 8}, "router": {"type": "vllm-router"}},
}
SFT: Table = {
    "data": {"name": "datasets/x", "type": "sft", "columns": {"renderer": {"a": "b"}}},
    "eval": {"source": [{"name": "a"}], "concurrency": {"min_inflight": 1}},
    "loss_mask": {"user": True},
    "val": {"data": {"type": "fake"}},
}
ODD = st.one_of(
    st.sampled_from(["None", "policy", "/volume", "", "5Ti", "single_node"]),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.none(),
    st.lists(st.one_of(st.text(max_size=2), st.integers()), max_size=2),
    st.dictionaries(st.sampled_from(["type", "name", "id", "env", "x"]), st.text(max_size=3)),
)


def paths(value: Value, path: KeyPath = ()) -> list[KeyPath]:
    inner: list[tuple[str | int, Value]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(found for key, part in inner for found in paths(part, (*path, key)))]


def replaced(value: Value, path: KeyPath, odd: Value) -> Value:
    if not path:
        return odd
    first, others = path[0], path[1:]
    if isinstance(value, dict) and isinstance(first, str):
        return {**value, first: replaced(value[first], others, odd)}
    assert isinstance(value, list)
    assert isinstance(first, int)
    return [*value[:first], replaced(value[first], others, odd), *value[first + 1 :]]


def outcome(source: ConfigSource, *, strict: bool = False) -> TrainConfig | InvalidConfigError:
    try:
        return load_config(source, strict=strict)
    except InvalidConfigError as error:
        return error


@settings(unhurried, max_examples=300)
@given(
    base=st.sampled_from([WHOLE, SFT]),
    data=st.data(),
    odds=st.lists(ODD, min_size=1, max_size=2),
    strict=st.booleans(),
)
def test_an_odd_value_anywhere_is_read_or_refused(
    base: Table, data: st.DataObject, odds: list[Value], strict: bool
) -> None:
    config: Value = base
    for odd in odds:
        config = replaced(config, data.draw(st.sampled_from(paths(config)[1:])), odd)
    assert isinstance(config, dict)
    loaded = outcome(config, strict=strict)
    if isinstance(loaded, InvalidConfigError):
        assert loaded.issues
        assert all(issue.key and issue.severity == "error" for issue in loaded.issues)
        return
    assert all(issue.severity == "warning" for issue in loaded.warnings)
    with contextlib.suppress(ValueError):
        estimate(loaded, parameters=10)
    try:
        request = build_request(loaded, volume="research")
    except InvalidConfigError:
        return
    assert json.loads(encode_request(request))["config"] == request.config


@settings(unhurried, max_examples=200)
@given(content=st.one_of(st.binary(max_size=40), st.text("[]{}.=\"'#\n ab1,\\", max_size=40)))
def test_any_file_is_read_or_refused_with_its_name(content: bytes | str, tmp_path: Path) -> None:
    path = tmp_path / "any.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    loaded = outcome(path)
    issues = loaded.issues if isinstance(loaded, InvalidConfigError) else loaded.warnings
    assert all(issue.file == str(path) for issue in issues)


@unhurried
@given(text=st.text(max_size=20))
def test_any_override_is_applied_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidConfigError):
        load_config(WHOLE, overrides=[text])


def test_whole_configs_are_accepted() -> None:
    assert load_config(WHOLE, strict=True).mode == "rl"
    assert load_config(SFT, strict=True).mode == "sft"


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 5000) + " = 1",
        "a = " + "[" * 100 + "]" * 100,
        "a = " + "[" * 100_000,
        "[" + ".".join(["a"] * 5000) + "]",
    ],
)
def test_deep_nesting_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text)
    with pytest.raises(InvalidConfigError, match="nested too deeply"):
        load_config(path)


def test_deep_mappings_and_overrides_are_refused_or_taken_as_text() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(InvalidConfigError, match="nested too deeply"):
        load_config(deep)
    with pytest.raises(InvalidConfigError, match=r"dotted\.key=value"):
        load_config({}, overrides=[".".join(["a"] * 5000) + "=1"])
    for value in ("[" * 100 + "]" * 100, '{"a":' * 100_000):
        assert load_config({}, overrides=[f"extra={value}"]).to_dict() == {"extra": value}


@pytest.mark.parametrize("source", [{"extra": ["\ud800"]}, {"extra": {"\ud800": 1}}])
def test_what_utf_8_can_t_hold_is_refused(source: dict[str, object]) -> None:
    with pytest.raises(InvalidConfigError, match="not Unicode text"):
        load_config(source)
