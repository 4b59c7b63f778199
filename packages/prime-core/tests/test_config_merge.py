"""Which source wins, for every combination of what the sources say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.config import Config

VARIABLES = ("PRIME_API_KEY", "PRIME_TEAM_ID", "PRIME_API_BASE_URL")
BLANK = ("", "  ")


class Said(NamedTuple):
    """What one source says; None is nothing at all."""

    api_key: str | None
    team_id: str | None
    base_url: str | None


def said(keys: str) -> st.SearchStrategy[Said]:
    def one_of(*values: str) -> st.SearchStrategy[str | None]:
        return st.none() | st.sampled_from(BLANK) | st.sampled_from(values)

    # Keys that two sources share are as likely as keys of their own.
    return st.builds(
        Said,
        one_of("shared-key", f"key-of-{keys}"),
        one_of(f"team-of-{keys}"),
        one_of(f"http://{keys}.example"),
    )


def resolve(home: Path, argument: Said, environment: Said, file: Said) -> Config:
    (home / ".prime").mkdir(exist_ok=True)
    stored = {name: value for name, value in file._asdict().items() if value is not None}
    (home / ".prime" / "config.json").write_text(json.dumps(stored), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("USERPROFILE", str(home))
        for name in ("PRIME_BASE_URL", "PRIME_USER_ID", "PRIME_CONTEXT"):
            patch.delenv(name, raising=False)
        for name, value in zip(VARIABLES, environment, strict=True):
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        return Config(argument.api_key, team_id=argument.team_id, base_url=argument.base_url)


@given(said("argument"), said("environment"), said("file"))
def test_the_first_source_that_speaks_wins_and_is_named(
    tmp_path_factory: pytest.TempPathFactory, argument: Said, environment: Said, file: Said
) -> None:
    config = resolve(tmp_path_factory.getbasetemp(), argument, environment, file)

    def first(values: list[str | None], default: str, without: str) -> tuple[str, str]:
        named = zip(("argument", "environment", "file"), values, strict=True)
        spoken = [(value, name) for name, value in named if value not in (None, *BLANK)]
        return spoken[0] if spoken else (default, without)

    layers = (argument, environment, file)
    key = first([layer.api_key for layer in layers], "", "unset")
    url = first([layer.base_url for layer in layers], Config.DEFAULT_BASE_URL, "default")
    assert (config.api_key, config.sources["api_key"].split()[0]) == key
    assert (config.base_url, config.sources["base_url"].split()[0]) == url


@settings(max_examples=400)  # most combinations hold no team that stands beside another key
@given(said("argument"), said("environment"), said("file"))
def test_a_team_is_never_joined_to_the_key_of_another_account(
    tmp_path_factory: pytest.TempPathFactory, argument: Said, environment: Said, file: Said
) -> None:
    config = resolve(tmp_path_factory.getbasetemp(), argument, environment, file)
    applicable: list[tuple[str | None, str]] = []
    for name, source in (("argument", argument), ("environment", environment), ("file", file)):
        team = source.team_id
        # A blank is a choice, "personal", but in the file, where it is a field left empty.
        if team in BLANK and name != "file":
            applicable.append((None, name))
        elif team not in (None, *BLANK) and source.api_key in (None, *BLANK, config.api_key):
            applicable.append((team, name))
    team, name = applicable[0] if applicable else (None, "unset")
    assert (config.team_id, config.sources["team_id"].split()[0].rstrip(":")) == (team, name)
