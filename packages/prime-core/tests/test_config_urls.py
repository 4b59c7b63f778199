"""The addresses of the services: where they come from, what they lose, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prime_core.config import Config
from prime_core.errors import ConfigurationError, PrimeError

KEY = "pit_0123456789abcdef"


@pytest.fixture(autouse=True)
def _nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PRIME_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))


@pytest.mark.parametrize(
    ("given_url", "kept"),
    [
        ("https://x.example/", "https://x.example"),
        ("https://x.example/api/v1", "https://x.example"),
        ("https://x.example/api/v1/", "https://x.example"),
        ("http://127.0.0.1:8080/prefix/api/v1//", "http://127.0.0.1:8080/prefix"),
        ("http://[::1]:9", "http://[::1]:9"),
        (" https://x.example ", "https://x.example"),
    ],
)
def test_the_control_plane_address_loses_slash_and_version(given_url: str, kept: str) -> None:
    assert Config(base_url=given_url).base_url == kept


def test_the_other_addresses_come_from_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_TRACES_URL", "https://t.example/api/v1/")
    monkeypatch.setenv("PRIME_INFERENCE_URL", "https://i.example/api/v1/")
    monkeypatch.setenv("PRIME_FRONTEND_URL", "https://f.example/")
    config = Config()
    assert config.traces_url == "https://t.example"
    assert config.inference_url == "https://i.example/api/v1"
    assert config.frontend_url == "https://f.example"


def test_api_base_url_comes_before_base_url_and_blank_ones_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRIME_BASE_URL", "https://second.example")
    monkeypatch.setenv("PRIME_API_BASE_URL", "")
    assert Config(base_url="").base_url == "https://second.example"
    monkeypatch.setenv("PRIME_API_BASE_URL", "https://first.example")
    assert Config().base_url == "https://first.example"
    assert Config().sources["base_url"] == "environment PRIME_API_BASE_URL"


def test_the_traces_address_does_not_follow_the_base_address() -> None:
    assert Config(base_url="https://x.example").traces_url == Config.DEFAULT_BASE_URL


@pytest.mark.parametrize(
    "url",
    [
        "x.example",
        "ftp://x.example",
        "https://",
        "https:///path",
        "https://x.example:port",
        "https://x.example:0",
        "https://[::1",
        "https://user:pw@x.example",
        "https://x.example?a=1",
        "https://x.example#a",
        "https://x.exa\nmple",
        "https://x.example/a b",
    ],
)
def test_an_address_that_is_none_is_refused_and_its_source_named(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PRIME_BASE_URL", url)
    with pytest.raises(ConfigurationError, match="base_url taken from environment PRIME_BASE_URL"):
        Config()


@pytest.mark.parametrize("url", [KEY, f"https://user:{KEY}@x.example"])
def test_a_refused_address_is_not_shown_as_it_may_hold_a_secret(url: str) -> None:
    with pytest.raises(PrimeError) as caught:
        Config(base_url=url)
    assert KEY not in str(caught.value)
