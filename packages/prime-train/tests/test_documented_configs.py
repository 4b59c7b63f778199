"""The TOML examples of the documentation load, check and come back as they are.

The documentation is read where PRIME_SHARED says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from code_blocks import code_blocks

from prime_train.configs.composition import ConfigSource, compose
from prime_train.configs.loading import Mode, TrainConfig, load_config
from prime_train.configs.payload import build_payload_from_toml
from prime_train.configs.toml import TomlError, parse_toml
from prime_train.configs.values import Table, with_nulls

SHARED = os.environ.get("PRIME_SHARED")
PAGES = ("hosted-training/", "prime-rl/")
WHOLE_PAGES = ("hosted-rl-page.txt", "end-to-end-run-page.txt")

# What hosted runs refuse or what is no TOML: page, and words of the block.
REFUSED = {
    ("prime-rl/configuration", "clean = true"),
    ("prime-rl/inference", "\n...\n"),
    ("prime-rl/inference", '\ntype = "disaggregated"\n'),
    ("prime-rl/inference", "# Native CPU offload"),
    ("prime-rl/algorithms", "[orchestrator.train.source.curriculum"),
    ("prime-rl/eval", 'model = "Qwen/Qwen3-4B"'),
}
# Blocks of runs on one's own machines, and an addition to a block that went before.
STRANGE = {
    ("prime-rl/scaling", "[slurm]"),
    ("prime-rl/training", "[slurm]"),
    ("prime-rl/algorithms", "[orchestrator.train.algo.filter]"),
}

pytestmark = pytest.mark.skipif(SHARED is None, reason="PRIME_SHARED does not name the docs")


def documentation(name: str) -> str:
    return (Path(SHARED or "") / "docs" / name).read_text("utf-8") if SHARED else ""


def examples(*pages: str) -> list[tuple[str, str]]:
    """Page and text of the examples of some pages."""
    text = documentation("platform-docs.txt")
    return [(page, code) for page, code in code_blocks(text, "toml") if page.startswith(pages)]


def unfenced(text: str) -> Iterator[str]:
    """The examples of a page without fences: runs of paragraphs that are TOML."""
    example: list[str] = []
    for paragraph in [*text.split("\n\n"), "end"]:
        if is_toml("\n\n".join([*example, paragraph])):
            example.append(paragraph)
        elif example:
            yield "\n\n".join(example)
            example = [paragraph] if is_toml(paragraph) else []


def is_toml(text: str) -> bool:
    try:
        return bool(parse_toml(text))
    except TomlError:
        return False


def listed(page: str, code: str, known: set[tuple[str, str]]) -> bool:
    return any(page == other and words in f"\n{code}" for other, words in known)


def mode_of(page: str, code: str) -> Mode:
    """Which kind of run a block belongs to; a page's blocks need not be whole configs."""
    table = parse_toml(code)
    online_eval = "eval" in table or "renderer" in table or "data" in table
    sft = page == "hosted-training/hosted-sft" or online_eval
    return "sft" if sft and not table.keys() & {"trainer", "orchestrator"} else "rl"


def comes_back(config: TrainConfig, code: str) -> None:
    assert config.to_dict() == parse_toml(code)
    dumped = cast(Table, config.settings.model_dump(exclude_unset=True))
    assert dumped == with_nulls(config.to_dict())
    again = load_config(config.to_dict(), mode=config.mode)
    assert again.settings == config.settings


@pytest.mark.parametrize(("page", "code"), examples(*PAGES), ids=lambda part: part[:30])
def test_an_example_loads_and_comes_back(page: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(code, encoding="utf-8")
    if listed(page, code, REFUSED):
        with pytest.raises(ValueError, match=r"example\.toml"):
            load_config(path)
        return
    strict = not listed(page, code, STRANGE)
    comes_back(load_config(path, mode=mode_of(page, code), strict=strict), code)


@pytest.mark.parametrize("name", WHOLE_PAGES)
def test_the_pages_on_their_own_hold_the_same_examples(name: str, tmp_path: Path) -> None:
    page = f"hosted-training/{name.removesuffix('-page.txt')}"
    expected = [parse_toml(code) for _, code in examples(page)]
    found = list(unfenced(documentation(name)))
    assert [parse_toml(code) for code in found] == expected
    for code in found:
        path = tmp_path / "example.toml"
        path.write_text(code, encoding="utf-8")
        comes_back(load_config(path, strict=True), code)


def bases() -> dict[Mode, Table]:
    """A whole config of each kind, to lay the pages' fragments over."""
    return {
        "rl": parse_toml(examples("hosted-training/getting-started")[0][1]),
        "sft": parse_toml(examples("hosted-training/hosted-sft")[0][1]),
    }


@pytest.mark.parametrize(("page", "code"), examples("hosted-training/"), ids=lambda part: part[:30])
def test_an_example_on_hosted_training_can_be_dispatched(
    page: str, code: str, tmp_path: Path
) -> None:
    """Whole ones as they are, fragments over a whole one, as the pages mean them."""
    path = tmp_path / "example.toml"
    path.write_text(code, encoding="utf-8")
    mode = mode_of(page, code)
    whole = {"rl": {"inference"}, "sft": {"data"}}[mode] <= parse_toml(code).keys()
    # A fragment's deployment stands for all of it: the kinds do not mix.
    left_out = parse_toml(code).keys() & {"deployment"}
    base = {key: value for key, value in bases()[mode].items() if key not in left_out}
    sources: list[ConfigSource] = [path] if whole else [base, path]
    if "num_infer_gpus" in code and mode == "sft":
        sources.append({"eval": {}, "inference": {}})
    elif code.startswith("[eval]"):
        sources.append({"deployment": {"gpus_per_node": 8}})
    config = load_config(*sources, strict=True)
    assert config.mode == mode
    payload = build_payload_from_toml(config, volume="research", wandb_api_key="key")
    assert payload["config"] == compose(sources).table
    assert payload.get("mode") == ("sft" if mode == "sft" else None)


def test_the_documentation_has_its_examples() -> None:
    assert len(examples("hosted-training/")) == 16
    assert len(examples("prime-rl/")) > 50
