"""Configuration: real files under a home of its own, real environment variables."""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.config import Config
from prime_core.errors import ConfigurationError

KEY = "pit_0123456789abcdef"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("PRIME_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


def store(home: Path, **values: object) -> None:
    (home / ".prime").mkdir(exist_ok=True)
    (home / ".prime" / "config.json").write_text(json.dumps(values))


def store_context(home: Path, name: str, **values: object) -> None:
    folder = home / ".prime" / "environments"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(values))


def test_with_nothing_set_there_is_no_key_and_the_addresses_are_the_public_ones() -> None:
    config = Config()
    assert (config.api_key, config.team_id, config.user_id) == ("", None, None)
    assert config.base_url == Config.DEFAULT_BASE_URL == "https://api.primeintellect.ai"
    assert config.traces_url == "https://api.primeintellect.ai"
    assert config.inference_url == "https://api.pinference.ai/api/v1"
    assert config.frontend_url == "https://app.primeintellect.ai"
    assert config.sources == {
        "api_key": "unset",
        "team_id": "unset",
        "user_id": "unset",
        "base_url": "default",
        "traces_url": "default",
        "inference_url": "default",
        "frontend_url": "default",
    }


def test_reading_creates_nothing(home: Path) -> None:
    Config()
    assert list(home.iterdir()) == []


def test_argument_beats_environment_beats_context_beats_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, api_key="of-file")
    seen = [(Config().api_key, Config().sources["api_key"])]
    store_context(home, "lab", api_key="of-context")
    monkeypatch.setenv("PRIME_CONTEXT", "lab")
    seen.append((Config().api_key, Config().sources["api_key"]))
    monkeypatch.setenv("PRIME_API_KEY", "of-environment")
    seen.append((Config().api_key, Config().sources["api_key"]))
    seen.append((Config("of-argument").api_key, Config("of-argument").sources["api_key"]))
    assert seen == [
        ("of-file", "file"),
        ("of-context", "context lab"),
        ("of-environment", "environment PRIME_API_KEY"),
        ("of-argument", "argument"),
    ]


def test_blank_key_means_unset_at_every_source(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(home, api_key="of-file")
    monkeypatch.setenv("PRIME_API_KEY", "  ")
    assert Config(" ").api_key == "of-file"
    store(home, api_key="")
    assert Config().sources["api_key"] == "unset"


def test_blanks_around_a_key_are_dropped() -> None:
    assert Config(f" {KEY}\n").api_key == KEY


# The account is one set.


def test_the_file_is_one_set(home: Path) -> None:
    store(home, api_key="k1", team_id="team-1", user_id="user-1")
    config = Config()
    assert (config.api_key, config.team_id, config.user_id) == ("k1", "team-1", "user-1")
    assert config.sources["team_id"] == config.sources["user_id"] == "file"


@pytest.mark.parametrize("as_argument", [True, False])
def test_the_team_of_the_file_is_not_joined_to_another_key(
    home: Path, monkeypatch: pytest.MonkeyPatch, as_argument: bool
) -> None:
    store(home, api_key="k1", team_id="team-1", user_id="user-1")
    if not as_argument:
        monkeypatch.setenv("PRIME_API_KEY", "k2")
    config = Config("k2" if as_argument else None)
    assert (config.api_key, config.team_id, config.user_id) == ("k2", None, None)
    assert config.sources["team_id"].startswith("unset: the one of file")


def test_the_team_of_the_file_stays_when_the_same_key_is_given_again(home: Path) -> None:
    store(home, api_key="k1", team_id="team-1")
    assert Config("k1").team_id == "team-1"


def test_a_team_stored_beside_no_key_applies_to_any_key(home: Path) -> None:
    store(home, team_id="team-1")
    assert Config("k2").team_id == "team-1"


def test_the_team_of_the_environment_is_not_joined_to_another_key(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "team-2")
    assert Config("k1").team_id == "team-2"
    monkeypatch.setenv("PRIME_API_KEY", "k2")
    assert Config().team_id == "team-2"
    assert Config("k1").team_id is None
    store(home, api_key="k1", team_id="team-1")
    assert Config("k1").team_id == "team-1"


def test_a_team_of_the_environment_applies_to_the_key_of_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, api_key="k1", team_id="team-1")
    monkeypatch.setenv("PRIME_TEAM_ID", "team-2")
    assert (Config().team_id, Config().sources["team_id"]) == (
        "team-2",
        "environment PRIME_TEAM_ID",
    )


def test_a_blank_team_variable_forces_the_personal_account(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, api_key="k1", team_id="team-1", user_id="user-1")
    monkeypatch.setenv("PRIME_TEAM_ID", " ")
    monkeypatch.setenv("PRIME_USER_ID", "")
    config = Config()
    assert (config.team_id, config.user_id) == (None, None)
    assert config.sources["team_id"] == "environment PRIME_TEAM_ID"
    assert config.sources["user_id"] == "environment PRIME_USER_ID"


def test_the_team_argument_wins_and_an_empty_one_is_personal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "team-2")
    assert Config(team_id="team-3").team_id == "team-3"
    assert Config(team_id="").team_id is None
    assert Config(team_id="").sources["team_id"] == "argument"


# Contexts.


def test_current_environment_selects_a_context(home: Path) -> None:
    store(home, api_key="k1", team_id="team-1", current_environment="lab")
    store_context(home, "lab", api_key="k2", base_url="https://lab.example")
    config = Config()
    assert (config.api_key, config.team_id) == ("k2", None)
    assert (config.base_url, config.sources["base_url"]) == ("https://lab.example", "context lab")


def test_a_context_without_a_key_keeps_that_of_the_file_but_not_its_team_or_addresses(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, api_key="k1", team_id="team-1", user_id="u1", traces_url="https://t.example")
    store_context(home, "lab", team_id="team-9")
    monkeypatch.setenv("PRIME_CONTEXT", "lab")
    config = Config()
    assert (config.api_key, config.team_id, config.user_id) == ("k1", "team-9", None)
    assert config.traces_url == Config.DEFAULT_BASE_URL
    assert config.sources["api_key"] == "file"


def test_a_context_with_an_empty_key_has_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(home, api_key="k1")
    store_context(home, "lab", api_key="")
    monkeypatch.setenv("PRIME_CONTEXT", "lab")
    assert Config().api_key == ""


def test_production_by_variable_resets_addresses_and_team_and_keeps_key_and_user(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(
        home,
        api_key="k1",
        team_id="team-1",
        user_id="u1",
        base_url="https://lab.example",
        current_environment="lab",
    )
    monkeypatch.setenv("PRIME_CONTEXT", "Production")
    config = Config()
    assert (config.api_key, config.team_id, config.user_id) == ("k1", None, "u1")
    assert config.base_url == Config.DEFAULT_BASE_URL


def test_production_as_current_environment_keeps_what_the_file_says(home: Path) -> None:
    store(home, team_id="team-1", base_url="https://x.example", current_environment="production")
    assert (Config().team_id, Config().base_url) == ("team-1", "https://x.example")


def test_a_blank_context_variable_selects_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, team_id="team-1")
    monkeypatch.setenv("PRIME_CONTEXT", "")
    assert Config().team_id == "team-1"


@pytest.mark.parametrize("name", ["absent", "../config", "a b", "x" * 300])
def test_an_unknown_context_is_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store(home, api_key="k1")
    store_context(home, "lab")
    monkeypatch.setenv("PRIME_CONTEXT", name)
    with pytest.raises(ConfigurationError, match="PRIME_CONTEXT"):
        Config()
    monkeypatch.delenv("PRIME_CONTEXT")
    store(home, api_key="k1", current_environment=name)
    with pytest.raises(ConfigurationError, match="current_environment"):
        Config()


# Files that are not as they should be.


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b'"text"',
        b"\xff\xfe\xfa",
        b"[" * 200_000,
        b'{"api_key": 7, "team_id": []}',
    ],
    ids=["empty", "cut", "list", "text", "binary", "deep", "wrong-types"],
)
def test_a_broken_file_reads_as_empty(home: Path, content: bytes) -> None:
    (home / ".prime").mkdir()
    (home / ".prime" / "config.json").write_bytes(content)
    assert (Config().api_key, Config().team_id) == ("", None)


def test_a_broken_file_is_told_at_debug_level(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    (home / ".prime").mkdir()
    (home / ".prime" / "config.json").write_text('{"api_key": "' + KEY)
    with caplog.at_level(logging.DEBUG, "prime_core"):
        Config()
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert KEY not in caplog.text


def test_a_directory_in_place_of_the_file_reads_as_empty(home: Path) -> None:
    (home / ".prime" / "config.json").mkdir(parents=True)
    assert Config().api_key == ""


def test_a_file_in_place_of_the_directory_reads_as_empty(home: Path) -> None:
    (home / ".prime").write_text("")
    assert Config().api_key == ""


@given(st.binary(max_size=200))
def test_no_file_content_raises(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / ".prime").mkdir()
    (home / ".prime" / "config.json").write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        Config()


# Secrets.


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "tab\there", "kéy", "ключ", "a\x00b"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigurationError, match="API key taken from argument") as caught:
        Config(key)
    assert key not in str(caught.value)


def test_a_team_id_that_no_header_can_carry_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="team id taken from argument"):
        Config(team_id="a\r\nX-Other: b")


def test_repr_shows_all_but_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "team-2")
    text = repr(Config(KEY, base_url="https://x.example"))
    assert KEY[:8] not in text
    assert "'**********' [argument]" in text
    assert "'team-2' [environment PRIME_TEAM_ID]" in text
    assert "'https://x.example' [argument]" in text


def test_a_pickle_carries_arguments_but_no_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(home, api_key="k-file")
    data = pickle.dumps(Config(KEY, team_id="team-3", base_url="https://x.example"))
    assert KEY.encode() not in data
    monkeypatch.setenv("PRIME_API_KEY", "k-there")
    arrived = pickle.loads(data)
    assert (arrived.api_key, arrived.team_id, arrived.base_url) == (
        "k-there",
        "team-3",
        "https://x.example",
    )


def test_a_key_found_in_the_environment_or_a_file_never_travels(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(home, api_key="k-file")
    data = pickle.dumps(Config(portable=True))
    monkeypatch.setenv("PRIME_API_KEY", KEY)
    assert KEY.encode() not in pickle.dumps(Config(portable=True))
    monkeypatch.delenv("PRIME_API_KEY")
    store(home)
    assert pickle.loads(data).api_key == ""


def test_a_portable_argument_key_travels_again_and_again() -> None:
    once = pickle.loads(pickle.dumps(Config(KEY, portable=True)))
    assert pickle.loads(pickle.dumps(once)).api_key == KEY


def test_a_copy_keeps_the_key() -> None:
    config = Config(KEY)
    assert copy.copy(config).api_key == copy.deepcopy(config).api_key == KEY


def test_importing_the_module_opens_no_file_under_home(home: Path) -> None:
    store(home, api_key="k-file")
    watch = (
        "import sys\n"
        "sys.addaudithook(lambda name, args: print(args[0]) if name == 'open' else None)\n"
        "import prime_core.config\n"
        "print('after import')\n"
        "prime_core.config.Config()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", watch], capture_output=True, text=True, timeout=60, check=True
    )
    before, _, after = done.stdout.partition("after import")
    assert ".prime" not in before
    assert ".prime" in after
