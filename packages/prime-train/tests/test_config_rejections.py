"""What the documentation says a dispatch refuses is found before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from prime_train.configs.loading import TrainConfig, load_config
from prime_train.configs.payload import build_request
from prime_train.errors import ConfigIssue, InvalidConfigError

RL = """\
max_steps = 10
[model]
name = "Qwen/Qwen3-4B"
[deployment]
num_train_gpus = 1
num_infer_gpus = 1
[inference]
[trainer.optim]
lr = 1e-6
[orchestrator.renderer]
name = "prime-qwen3"
[orchestrator.train.sampling]
temperature = 1.0
[[orchestrator.train.source]]
name = "one"
"""
SFT = """\
max_steps = 10
[model]
name = "Qwen/Qwen3-4B"
[data]
type = "sft"
seq_len = 2048
[deployment]
num_train_gpus = 4
[renderer]
name = "prime-qwen3"
"""
MULTI = """\
[deployment]
type = "multi_node"
num_train_nodes = 1
"""


@dataclass(frozen=True)
class Case:
    """A config that is refused: the base, what is laid over it, and what is said of it."""

    base: str
    overlay: str
    key: str
    line: int
    words: str
    file: str = "overlay.toml"
    volume: str | None = None


CASES = {
    "retired model string": Case(RL, 'x = 1\nmodel = "a/b"', "model", 2, "retired"),
    "retired environments": Case(RL, '[[env]]\nid = "a/b"', "env", 1, "retired"),
    "flat training environment": Case(
        RL, '[[orchestrator.train.env]]\nid = "a"', "orchestrator.train.env", 1, "flat shape"
    ),
    "flat evaluation environment": Case(
        RL, '[[orchestrator.eval.env]]\nid = "a"', "orchestrator.eval.env", 1, "flat shape"
    ),
    "flat environment of SFT": Case(SFT, '[[eval.env]]\nid = "a"', "eval.env", 1, "flat shape"),
    "k8s": Case(RL, "[k8s]", "k8s", 1, "no \\[k8s\\]"),
    "clean": Case(SFT, "clean = true", "clean", 1, "wipe"),
    "disaggregated": Case(
        RL,
        '[inference.deployment]\ntype = "disaggregated"',
        "inference.deployment.type",
        2,
        "prefill",
    ),
    "no inference": Case(RL, '\ninference = "None"', "inference", 2, "needs an \\[inference\\]"),
    "inference never named": Case(
        RL.replace("[inference]\n", ""), "", "inference", 4, "an empty one", file="base.toml"
    ),
    "no GPUs of inference": Case(
        RL, "[deployment]\nnum_infer_gpus = 0", "deployment.num_infer_gpus", 2, "at least 1"
    ),
    "inference without evals": Case(SFT, "[inference]", "inference", 1, "add \\[eval\\]"),
    "data without a volume": Case(
        SFT, '[data]\nname = "datasets/x"', "data.name", 2, "needs a volume"
    ),
    "model without a volume": Case(
        RL, '[model]\nname = "/volume/m"', "model.name", 2, "mounts none"
    ),
    "trainer's model without a volume": Case(
        RL, '[trainer.model]\nname = "/volume/m"', "trainer.model.name", 2, "mounts none"
    ),
    "SFT model without a volume": Case(
        SFT, '[model]\nname = "/volume/m"', "model.name", 2, "mounts none"
    ),
    "model elsewhere on the disk": Case(
        RL, '[model]\nname = "/models/m"', "model.name", 2, "/volume/folder", volume="v"
    ),
    "the volume itself as model": Case(
        RL, '[model]\nname = "/volume"', "model.name", 2, "/volume/folder", volume="v"
    ),
    "model above the volume": Case(
        SFT, '[model]\nname = "/volume/../m"', "model.name", 2, "/volume/folder", volume="v"
    ),
    "hidden model": Case(
        SFT, '[model]\nname = "/volume/.m"', "model.name", 2, "/volume/folder", volume="v"
    ),
    "trailing slash": Case(
        SFT, '[model]\nname = "/volume/m/"', "model.name", 2, "/volume/folder", volume="v"
    ),
    "GPUs over the cap": Case(
        RL, MULTI + "num_infer_nodes = 8", "deployment", 1, "72 GPUs; a run may hold 64"
    ),
    "training nodes unsaid": Case(
        RL, '[deployment]\ntype = "multi_node"', "deployment", 1, "num_train_nodes"
    ),
    "evals over the node": Case(
        SFT,
        "[eval]\n[inference]\n[deployment]\nnum_infer_gpus = 5",
        "deployment",
        3,
        "4 \\+ 5 GPUs of one node",
    ),
    "evals on several nodes without inference nodes": Case(
        SFT,
        "[eval]\n[inference.router]\n" + MULTI + "num_infer_nodes = 0",
        "deployment.num_infer_nodes",
        6,
        "at least 1",
    ),
    "evals on several nodes without a router": Case(
        SFT,
        "[eval]\n[inference]\n" + MULTI + "num_infer_nodes = 1",
        "inference.router",
        2,
        "inference.router",
    ),
    "VLM of another dtype": Case(
        RL,
        '[trainer.model]\noptimization_dtype = "bfloat16"\nreduce_dtype = "float32"\n'
        "[trainer.model.vlm]",
        "trainer.model.reduce_dtype",
        3,
        "bfloat16",
    ),
    "SFT VLM of another dtype": Case(
        SFT,
        '[model]\noptimization_dtype = "float32"\n[model.vlm]',
        "model.optimization_dtype",
        2,
        "bfloat16",
    ),
    "top_k of the group": Case(
        RL,
        "[orchestrator.train.sampling]\ntop_k = 513",
        "orchestrator.train.sampling.top_k",
        2,
        "at most 512",
    ),
    "top_k of a source": Case(
        RL,
        "[[orchestrator.train.source]]\n[[orchestrator.train.source]]\nname = 'b'\n"
        "sampling.top_k = 600",
        "orchestrator.train.source.1.sampling.top_k",
        4,
        "at most 512",
    ),
    "top_k in the extra body": Case(
        RL,
        "[orchestrator.train.sampling.extra_body]\ntop_k = 600",
        "orchestrator.train.sampling.top_k",
        1,
        "at most 512",
    ),
    "sampling of an agent": Case(
        RL,
        "[[orchestrator.train.source]]\nname = 'a'\nenv.solver.sampling.temperature = 0.5\n"
        "env.solver.sampling.max_tokens = 5",
        "orchestrator.train.source.0.env.solver.sampling.temperature",
        3,
        "agents of a training source",
    ),
    "distillation from truncated samples": Case(
        RL,
        '[orchestrator.train.algo]\ntype = "opsd"\n[orchestrator.train.sampling]\ntop_p = 0.9',
        "orchestrator.train.sampling",
        3,
        "truncated",
    ),
    "sft without a source": Case(
        RL,
        '[orchestrator.train.algo]\ntype = "sft"',
        "orchestrator.train.algo.sampling.source",
        1,
        "frozen model",
    ),
    "sft from the policy": Case(
        RL,
        '[[orchestrator.train.source]]\nalgo.type = "sft"\nalgo.sampling.source = "policy"',
        "orchestrator.train.source.0.algo.sampling.source",
        3,
        "frozen model",
    ),
    "opd taught by the policy": Case(
        RL,
        '[orchestrator.train.algo]\ntype = "opd"\nteacher = "policy"',
        "orchestrator.train.algo.teacher",
        3,
        "frozen teacher",
    ),
    "opd without an endpoint": Case(
        RL,
        '[orchestrator.train.algo]\ntype = "opd"\n[orchestrator.train.algo.teacher]\nname = "t"',
        "orchestrator.train.algo.teacher",
        3,
        "frozen teacher",
    ),
    "policy loss on another's samples": Case(
        RL,
        "[orchestrator.train.algo.sampling.source]\nname = 't'\nbase_url = 'u'",
        "orchestrator.train.algo.sampling.source",
        1,
        "own samples",
    ),
    "two sources of one name": Case(
        RL,
        "[[orchestrator.train.source]]\nenv.taskset.id = 'a'\n"
        "[[orchestrator.train.source]]\nname = 'a'",
        "orchestrator.train.source.1.name",
        4,
        "same name",
    ),
    "wrong type": Case(RL, "max_steps = 'x'", "max_steps", 1, "integer"),
    "knob that is no string": Case(RL, "image_tag = 5", "image_tag", 1, "must be a string"),
    "volume's name": Case(RL, "volume = 'Big'", "volume", 1, "a-z"),
    "volume's size": Case(RL, "volume = 'v'\nvolume_size = '1.5Ti'", "volume_size", 2, "1536Gi"),
    "volume too large": Case(RL, "volume = 'v'\nvolume_size = '21Ti'", "volume_size", 2, "20Ti"),
    "size without a volume": Case(RL, "volume_size = '5Ti'", "volume_size", 1, "needs volume"),
    "source ref": Case(RL, "source_ref = 'refs/heads/x'", "source_ref", 1, "branch"),
    "env files": Case(RL, "env_files = ['a', 1]", "env_files", 1, "list of paths"),
}


def write(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / name for name in ("base.toml", "overlay.toml")][: len(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(dedent(text))
    return paths


def refusals(case: Case, paths: list[Path]) -> tuple[ConfigIssue, ...]:
    with pytest.raises(InvalidConfigError) as caught:
        build_request(load_config(*paths), volume=case.volume)
    return caught.value.issues


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_it_is_refused_with_file_line_and_key(case: Case, tmp_path: Path) -> None:
    paths = write(tmp_path, case.base, case.overlay)
    found = [issue for issue in refusals(case, paths) if issue.key == case.key]
    assert len(found) == 1
    assert (found[0].file, found[0].line) == (str(tmp_path / case.file), case.line)
    with pytest.raises(InvalidConfigError, match=case.words):
        raise InvalidConfigError(found)


@pytest.mark.parametrize("base", [RL, SFT])
def test_what_the_cases_are_laid_over_is_accepted(base: str, tmp_path: Path) -> None:
    config = load_config(*write(tmp_path, base), strict=True)
    assert config.findings() == ()


@pytest.mark.parametrize(
    ("base", "overlay"),
    [
        (RL, "inference = 'None'\n[trainer.data.fake]"),
        (RL, "[deployment]\nnum_infer_gpus = 0\n[trainer.data.fake]"),
        (RL, MULTI + "num_infer_nodes = 7"),
        (RL, "clean = false"),
        (RL, "[orchestrator.train.sampling]\ntop_k = 512\ntop_p = 0.9"),
        (RL, "[orchestrator.train.algo]\ntype = 'opsd'\n[orchestrator.train.sampling]\ntop_k = -1"),
        (
            RL,
            "[orchestrator.train.algo]\ntype = 'sft'\n"
            "sampling.source = {name = 't', base_url = 'u'}\n"
            "[[orchestrator.train.source]]\nenv.agent.sampling.temperature = 0.5",
        ),
        (
            RL,
            "[orchestrator.train.algo]\ntype = 'opd'\nteacher = {name = 't', base_url = 'u'}",
        ),
        (SFT, "[data]\ntype = 'fake'\nname = 'x'"),
        (SFT, "[eval]\n[inference]\n[deployment]\nnum_infer_gpus = 4"),
        (SFT, "[eval]\n[inference.router]\n" + MULTI + "num_infer_nodes = 1"),
        (
            SFT,
            "[model]\noptimization_dtype = 'bfloat16'\nreduce_dtype = 'bfloat16'\n[model.vlm]",
        ),
    ],
)
def test_what_is_just_within_the_rules_is_accepted(base: str, overlay: str, tmp_path: Path) -> None:
    load_config(*write(tmp_path, base, overlay)).check()


@pytest.mark.parametrize("base", [RL, SFT])
def test_what_lies_on_a_volume_is_accepted_with_one(base: str, tmp_path: Path) -> None:
    overlay = '[model]\nname = "/volume/models/qwen3-hf_2.5"\n'
    if base == SFT:
        overlay += '[data]\nname = "/volume/datasets/x"\n'
    config = load_config(*write(tmp_path, base, overlay))
    with pytest.raises(InvalidConfigError):
        config.check()
    config.check(volume="research")
    config.check(resume_from="wn2cjdrzdo6bmfqajoeuu30p")
    load_config(*tmp_path.glob("*.toml"), {"volume": "research"}).check()


def test_an_account_may_have_a_lower_cap(tmp_path: Path) -> None:
    config = load_config(*write(tmp_path, RL))
    config.check(gpu_cap=2)
    with pytest.raises(InvalidConfigError, match="2 GPUs; a run may hold 1"):
        config.check(gpu_cap=1)


def test_everything_that_is_wrong_comes_in_one_error(tmp_path: Path) -> None:
    overlay = "[deployment]\nnum_infer_gpus = 0\n[model]\nname = '/x'\n[orchestrator.train.algo]\n"
    paths = write(tmp_path, RL, overlay + "type = 'opd'")
    keys = {issue.key for issue in refusals(Case(RL, "", "", 0, ""), paths)}
    assert keys == {
        "deployment.num_infer_gpus",
        "model.name",
        "orchestrator.train.algo.teacher",
    }


@pytest.mark.parametrize(
    ("overlay", "key", "words"),
    [
        ("[ckpt]", "ckpt", "lost"),
        ("[wandb]", "wandb", "WANDB_API_KEY"),
        ("output_dir = 'x'", "output_dir", "set by the platform"),
        ("[resume]\ndir = '/volume/runs/x/checkpoints/step_1'", "resume.dir", "mounts none"),
        ("[trainer.model.vlm]", "trainer.model.vlm", "bfloat16"),
        ("[deployment]\nnum_train_gpus = 8", "deployment", "9 GPUs on one node of 8"),
        ("[orchestrator.train.env.taskset]\nid = 'a'", "orchestrator.train.env.taskset.id", "ids"),
        ("[orchestrator.eval.env.agent]", "orchestrator.eval.env.agent", "agents stay"),
        ("[monitors.wandb]", "monitors.wandb", "WANDB_API_KEY"),
        ("[ckpt]\nkeep_interval = 3", "ckpt.keep_interval", "may be deleted"),
    ],
)
def test_what_would_be_regretted_is_a_warning(
    overlay: str, key: str, words: str, tmp_path: Path
) -> None:
    config: TrainConfig = load_config(*write(tmp_path, RL, overlay))
    config.check()
    found = [issue for issue in config.findings() if issue.key == key]
    assert found
    assert words in found[0].message
    assert found[0].severity == "warning"


def test_a_model_on_a_volume_wants_its_renderer_named(tmp_path: Path) -> None:
    config = load_config(
        *write(tmp_path, RL, '[model]\nname = "/volume/m"\n[orchestrator]\nrenderer.name = "auto"')
    )
    [issue] = config.findings(volume="v")
    assert (issue.key, issue.severity) == ("model.name", "warning")
    assert "renderer" in issue.message


@pytest.mark.parametrize(
    ("overlay", "override", "key"),
    [
        ({"max_steps": "3"}, [], "max_steps"),
        ({"max_steps": True}, [], "max_steps"),
        ({"max_steps": 3.0}, [], "max_steps"),
        ({"orchestrator": {"batch_size": "64"}}, [], "orchestrator.batch_size"),
        ({}, ["trainer.optim.lr=nan"], "trainer.optim.lr"),
        ({}, ["inference.vllm.enable_expert_parallel=1"], "enable_expert_parallel"),
    ],
)
def test_a_value_of_another_type_is_refused(
    overlay: dict[str, object], override: list[str], key: str, tmp_path: Path
) -> None:
    source = tmp_path / "rl.toml"
    source.write_text(RL, encoding="utf-8")
    with pytest.raises(InvalidConfigError, match=key):
        load_config(source, overlay, overrides=override)


def test_a_whole_number_may_stand_for_a_fraction(tmp_path: Path) -> None:
    source = tmp_path / "rl.toml"
    source.write_text(RL, encoding="utf-8")
    load_config(source, overrides=["trainer.optim.lr=1"])
