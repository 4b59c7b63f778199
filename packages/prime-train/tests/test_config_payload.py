"""A config becomes the body of a create: knobs placed, secrets placed, the rest as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prime_core.models import encode_request
from prime_core.secret import Secret
from prime_local.contract.document import load_contract
from prime_local.contract.validation import ContractChecks
from prime_train.configs.loading import load_config
from prime_train.configs.payload import build_payload_from_toml, build_request
from prime_train.configs.secrets import RunSecrets, read_secrets
from prime_train.errors import InvalidConfigError
from prime_train.models.dispatch import CreateRunRequest

TOML = """\
name = "reverse"
image_tag = "v0.5.1"
gpu_type = "H200_141GB"
volume = "research"
volume_size = "1536Gi"
source_ref = "feature/x"
env_file = "first.env"
env_files = ["second.env", "/etc/third.env"]
type = "full"
max_steps = 10

[wandb]
project = "p"

[inference]
"""
CONFIG = {"name": "reverse", "max_steps": 10, "inference": {}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rl.toml"
    path.write_text(TOML)
    return path


def test_knobs_leave_the_config_and_are_sent_under_their_wire_names(path: Path) -> None:
    assert build_payload_from_toml(path) == {
        "config": CONFIG,
        "name": "reverse",
        "imageTag": "v0.5.1",
        "gpuType": "H200_141GB",
        "volume": "research",
        "sourceRef": "feature/x",
    }


def test_an_argument_wins_over_the_file(path: Path) -> None:
    payload = build_payload_from_toml(
        path,
        name="other",
        team_id="cmb4f0k2p0001l8zq7h3n9x5t",
        image_tag="main",
        wandb_api_key="w",
        hf_token="h",
        gpu_type="B200_180GB",
        volume="elsewhere",
        mode="rl",
        source_ref="main",
        resume_from="wn2cjdrzdo6bmfqajoeuu30p",
    )
    assert payload == {
        "config": {**CONFIG, "wandb": {"project": "p"}},
        "name": "other",
        "teamId": "cmb4f0k2p0001l8zq7h3n9x5t",
        "imageTag": "main",
        "wandbApiKey": "w",
        "hfToken": "h",
        "gpuType": "B200_180GB",
        "volume": "elsewhere",
        "sourceRef": "main",
        "resumeFrom": "wn2cjdrzdo6bmfqajoeuu30p",
    }


def test_what_the_file_does_not_say_is_not_sent() -> None:
    assert build_payload_from_toml({"inference": {}}) == {"config": {"inference": {}}}
    sft = {"data": {"type": "fake"}}
    assert build_payload_from_toml(sft) == {"config": sft, "mode": "sft"}


def test_a_knob_can_be_switched_off_again(path: Path) -> None:
    off = {"image_tag": "None", "volume": "None", "volume_size": None, "env_file": "None"}
    config = load_config(path, off, {"env_files": "None"})
    assert config.env_files == ()
    payload = build_payload_from_toml(config)
    assert payload.keys() == {"config", "name", "gpuType", "sourceRef"}


def test_wandb_is_left_out_without_its_key(path: Path) -> None:
    config = load_config(path)
    assert "wandb" not in build_request(config).config
    with_key = build_request(config, secrets=RunSecrets(wandb_api_key=Secret("w")))
    assert with_key.config["wandb"] == {"project": "p"}
    assert "wandb" in config.to_dict()


def test_secrets_are_sent_in_their_places_and_shown_nowhere(path: Path) -> None:
    secrets = read_secrets("WANDB_API_KEY=hunter2w", "HF_TOKEN=hunter2h", "A=hunter2a", environ={})
    request = build_request(load_config(path), secrets=secrets)
    body = json.loads(encode_request(request))
    assert body["wandbApiKey"] == "hunter2w"
    assert body["hfToken"] == "hunter2h"
    assert body["secrets"] == {"A": "hunter2a"}
    assert "hunter2" not in repr(request)
    assert body["config"] == {**CONFIG, "wandb": {"project": "p"}}


def test_the_env_files_of_a_config_are_relative_to_it(path: Path, tmp_path: Path) -> None:
    files = load_config(path, {"env_file": "mine.env"}).env_files
    assert files == ("mine.env", str(tmp_path / "second.env"), "/etc/third.env")
    (tmp_path / "first.env").write_text("A=1\n")
    (tmp_path / "second.env").write_text("A=2\n")
    config = load_config(path, overrides=["env_files.1=None"])
    assert config.env_files[0] == str(tmp_path / "first.env")
    secrets = read_secrets(env_files=config.env_files[:2], environ={})
    assert secrets.values["A"].reveal() == "2"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"volume": "Big"}, "volume"),
        ({"volume": ""}, "volume"),
        ({"gpu_type": ""}, "gpu_type"),
        ({"source_ref": "a..b"}, "source_ref"),
        ({"source_ref": "a/.b"}, "source_ref"),
        ({"source_ref": "a//b"}, "source_ref"),
        ({"source_ref": "a/"}, "source_ref"),
        ({"source_ref": "a."}, "source_ref"),
        ({"source_ref": "a.lock/b"}, "source_ref"),
        ({"source_ref": "a.lock"}, "source_ref"),
        ({"source_ref": "pull/12"}, "source_ref"),
        ({"source_ref": "-a"}, "source_ref"),
        ({"source_ref": "a" * 201}, "source_ref"),
        ({"source_ref": "a\n"}, "source_ref"),
    ],
)
def test_an_argument_that_can_t_be_sent_is_refused(arguments: dict[str, str], key: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        build_request(load_config({"inference": {}}), **arguments)  # type: ignore[arg-type]
    assert [issue.key for issue in caught.value.issues] == [key]


@pytest.mark.parametrize("ref", ["main", "v0.10.1.dev11", "a/b-c_d.e", "0123abc", "a" * 200])
def test_branches_tags_and_commits_are_source_refs(ref: str) -> None:
    request = build_request(load_config({"inference": {}}), source_ref=ref)
    assert request.source_ref == ref


def test_secrets_over_a_limit_and_what_the_config_is_refused_for_come_together() -> None:
    secrets = RunSecrets(values={"PRIME_API_KEY": Secret("x")})
    with pytest.raises(InvalidConfigError) as caught:
        build_request(load_config({}), secrets=secrets)
    assert {issue.key for issue in caught.value.issues} == {"PRIME_API_KEY", "inference"}


def test_the_body_keeps_the_contract(path: Path) -> None:
    contract = load_contract()
    create = contract.operations["create_training_run"]
    checks = ContractChecks(contract)
    secrets = read_secrets("WANDB_API_KEY=w", "HF_TOKEN=h", "A=a", environ={})
    request = build_request(
        load_config(path), team_id="cmb4f0k2p0001l8zq7h3n9x5t", resume_from="x", secrets=secrets
    )
    body = json.loads(encode_request(request))
    known = contract.documents["training"]["components"]["schemas"]["CreateTrainingRunRequest"]
    assert body.keys() <= known["properties"].keys()
    assert checks.body(create, body) == []
    assert checks.body(create, {**body, "secrets": {"a b": "x"}}) != []


def test_the_request_takes_the_wire_s_names_and_refuses_others() -> None:
    request = CreateRunRequest.model_validate({"config": {}, "resumeFrom": "x"})
    assert request.resume_from == "x"
    with pytest.raises(ValueError, match="Extra inputs"):
        CreateRunRequest.model_validate({"config": {}, "resume": "x"})
