"""What a login writes to `~/.prime`, and what it leaves alone."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from prime_core.config import Config
from prime_core.errors import ConfigurationError
from prime_core.login.stored import store

KEY = "pit_c0ffee"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".prime"  # HOME is tmp_path


def put(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_for_its_owner_alone_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        store({"api_key": KEY, "team_id": None})
    finally:
        os.umask(before)
    assert (mode(folder), mode(folder / "config.json")) == (0o700, 0o600)
    assert read(folder / "config.json") == {"api_key": KEY, "team_id": None}
    assert os.listdir(folder) == ["config.json"]
    assert Config().api_key == KEY


def test_a_file_that_anybody_may_read_becomes_private_and_keeps_the_rest(folder: Path) -> None:
    put(folder / "config.json", {"api_key": "old", "ssh_key_path": "~/k", "unknown": [1]})
    folder.chmod(0o755)
    (folder / "config.json").chmod(0o644)
    store({"api_key": KEY})
    assert (mode(folder), mode(folder / "config.json")) == (0o700, 0o600)
    assert read(folder / "config.json") == {
        "api_key": KEY,
        "ssh_key_path": "~/k",
        "unknown": [1],
    }


@pytest.mark.parametrize("broken", ["", "{", "[]", "null", "[" * 100_000, "\ud7ff"])
def test_a_file_that_is_not_understood_is_left_alone(broken: str, folder: Path) -> None:
    put(folder / "config.json", broken)
    with pytest.raises(ConfigurationError, match=r"config\.json"):
        store({"api_key": KEY})
    assert (folder / "config.json").read_text() == broken
    assert os.listdir(folder) == ["config.json"]


def test_the_active_contexts_file_is_changed_too(folder: Path) -> None:
    put(folder / "config.json", {"api_key": "old", "current_environment": "work"})
    context = folder / "environments" / "work.json"
    put(context, {"api_key": "older", "base_url": "https://work.example", "team_id": "t"})
    store({"api_key": KEY, "team_id": None})
    assert read(folder / "config.json")["api_key"] == KEY
    assert read(context) == {"api_key": KEY, "base_url": "https://work.example", "team_id": None}
    assert mode(context) == 0o600
    assert (Config().api_key, Config().team_id) == (KEY, None)


@pytest.mark.parametrize("name", ["production", "Production", "", None, 3])
def test_the_built_in_context_has_no_file(name: object, folder: Path) -> None:
    put(folder / "config.json", {"current_environment": name})
    store({"api_key": KEY})
    assert os.listdir(folder) == ["config.json"]


@pytest.mark.parametrize("name", ["gone", "../config", "a/b", "work.json"])
def test_a_context_that_does_not_exist_changes_nothing(name: str, folder: Path) -> None:
    put(folder / "config.json", {"current_environment": name})
    with pytest.raises(ConfigurationError, match="does not exist"):
        store({"api_key": KEY})
    assert read(folder / "config.json") == {"current_environment": name}


def test_a_broken_context_changes_neither_file(folder: Path) -> None:
    put(folder / "config.json", {"current_environment": "work"})
    put(folder / "environments" / "work.json", "{")
    with pytest.raises(ConfigurationError, match=r"work\.json"):
        store({"api_key": KEY})
    assert read(folder / "config.json") == {"current_environment": "work"}


def test_a_context_for_this_process_alone_is_not_written_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_CONTEXT", "work")
    with pytest.raises(ConfigurationError, match="PRIME_CONTEXT"):
        store({"api_key": KEY})
    assert not folder.exists()


def test_a_symbolic_link_stays_one(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "prime.json"
    put(target, {"unknown": 1})
    folder.mkdir()
    (folder / "config.json").symlink_to(target)
    store({"api_key": KEY})
    assert (folder / "config.json").is_symlink()
    assert read(target) == {"unknown": 1, "api_key": KEY}
    assert mode(target) == 0o600


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "config.json", {"api_key": "old"})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store({"api_key": KEY})
    assert read(folder / "config.json") == {"api_key": "old"}
    assert os.listdir(folder) == ["config.json"]
