"""Where the API key, the team and the service addresses come from.

Follows the documented page "cli-reference/config-cli": the SDK reads the files that the
command line tool writes; only a login writes them, in `prime_core.login`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from prime_core.errors import ConfigurationError
from prime_core.secret import Secret

__all__ = ["Config", "stored_setting"]

logger = logging.getLogger("prime_core")

CONTEXT_NAME = re.compile(r"[a-zA-Z0-9_-]{1,200}")
_HEADER_TEXT = re.compile(r"[\x21-\x7e]+")

_ACCOUNT_FIELDS = ("api_key", "team_id", "user_id")
_URL_DEFAULTS = {
    "base_url": "https://api.primeintellect.ai",
    "traces_url": "https://api.primeintellect.ai",
    "inference_url": "https://api.pinference.ai/api/v1",
    "frontend_url": "https://app.primeintellect.ai",
}
_URL_VARIABLES = {
    "base_url": ("PRIME_API_BASE_URL", "PRIME_BASE_URL"),
    "traces_url": ("PRIME_TRACES_URL",),
    "inference_url": ("PRIME_INFERENCE_URL",),
    "frontend_url": ("PRIME_FRONTEND_URL",),
}
# The client adds /api/v1 to these two itself; the inference address keeps its own.
_ROOT_URLS = ("base_url", "traces_url")


class _Found(NamedTuple):
    """A value and where it was found; None is a choice too: "no team"."""

    value: str | None
    source: str


_Layer = dict[str, _Found]


class Config:
    """Resolved settings of one account; read-only, and made without touching the network.

    Each setting is taken from the first of: argument, environment variable, active context
    (`PRIME_CONTEXT`, else `current_environment` of the file), `~/.prime/config.json`,
    default. The account is resolved as one set: a team or user id that stands beside an API
    key applies to that key alone, so it is passed over when another key wins. One that
    stands beside no key applies to whichever key wins. `sources` tells where each setting
    came from. Files are only read: a missing or broken one counts as empty.

    A pickled `Config` carries its arguments, without the API key unless `portable`; all else
    is resolved again, from the environment and the files of the process it arrives in.

    Follows the documented page "cli-reference/config-cli".

    Args:
        api_key: the API key; None or blank looks further.
        team_id: the team to act for; "" is the personal account, None looks further.
        base_url: address of the control plane, with or without a trailing `/api/v1`; None or
            blank looks further.
        traces_url: address of the traces service, in the same manner. It never follows
            `base_url`.
        inference_url: address of the inference service, with its `/api/v1`.
        portable: lets an `api_key` given as an argument travel in a pickle.

    Raises:
        ConfigurationError: an unknown context, an address that is not an http(s) URL, or a
            key or team id that cannot be sent in a header. The text names the source, never
            the key.
    """

    DEFAULT_BASE_URL = _URL_DEFAULTS["base_url"]

    __slots__ = ("_api_key", "_arguments", "_portable", "_sources", "_team_id", "_urls", "_user_id")

    def __init__(
        self,
        api_key: str | None = None,
        *,
        team_id: str | None = None,
        base_url: str | None = None,
        traces_url: str | None = None,
        inference_url: str | None = None,
        portable: bool = False,
    ) -> None:
        urls = {
            "base_url": base_url,
            "traces_url": traces_url,
            "inference_url": inference_url,
        }
        explicit = _from_arguments(api_key, team_id, urls)
        layers = (explicit, _from_environment(), _from_files())
        found = _resolve_account(layers) | _resolve_urls(layers)
        self._arguments = (Secret(api_key or ""), team_id, urls)
        self._portable = portable
        self._api_key = Secret(found["api_key"].value or "")
        self._team_id = found["team_id"].value
        self._user_id = found["user_id"].value
        self._urls = {name: found[name].value or "" for name in _URL_DEFAULTS}
        self._sources = MappingProxyType({name: found[name].source for name in found})

    @property
    def api_key(self) -> str:
        """The API key; "" when none was found."""
        return self._api_key.reveal()

    @property
    def team_id(self) -> str | None:
        """The team to act for; None is the personal account."""
        return self._team_id

    @property
    def user_id(self) -> str | None:
        """The user the key belongs to, as far as it is known."""
        return self._user_id

    @property
    def base_url(self) -> str:
        """Address of the control plane, without `/api/v1` and trailing slash."""
        return self._urls["base_url"]

    @property
    def traces_url(self) -> str:
        """Address of the traces service, without `/api/v1` and trailing slash.

        It does not follow `base_url`.
        """
        return self._urls["traces_url"]

    @property
    def inference_url(self) -> str:
        """Address of the inference service, with its `/api/v1`, without trailing slash."""
        return self._urls["inference_url"]

    @property
    def frontend_url(self) -> str:
        """Address of the dashboard, without trailing slash."""
        return self._urls["frontend_url"]

    @property
    def sources(self) -> Mapping[str, str]:
        """Where each setting came from, by the name of its property.

        One of "argument", "environment VARIABLE", "context NAME", "file", "default" or
        "unset"; the latter with a reason when a value was passed over.
        """
        return self._sources

    def __repr__(self) -> str:
        shown: dict[str, str | None] = {
            "api_key": str(self._api_key),
            "team_id": self._team_id,
            "user_id": self._user_id,
            **self._urls,
        }
        fields = (f"{name}={shown[name]!r} [{source}]" for name, source in self._sources.items())
        return f"Config({', '.join(fields)})"

    def __copy__(self) -> Config:
        return self

    def __deepcopy__(self, memo: object) -> Config:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        key, team_id, urls = self._arguments
        travelling = key.reveal() if self._portable else None
        return _arrive, (travelling or None, team_id, urls, self._portable)


def stored_setting(name: str) -> object:
    """What ``~/.prime/config.json`` holds under a name that concerns one package alone."""
    try:
        stored = _read(Path.home() / ".prime" / "config.json")
    except RuntimeError:  # no home directory is known
        return None
    return (stored or {}).get(name)


def _arrive(
    api_key: str | None, team_id: str | None, urls: Mapping[str, str | None], portable: bool
) -> Config:
    return Config(api_key, team_id=team_id, portable=portable, **urls)


def _from_arguments(
    api_key: str | None, team_id: str | None, urls: Mapping[str, str | None]
) -> _Layer:
    layer: _Layer = {}
    if api_key and api_key.strip():
        layer["api_key"] = _Found(api_key.strip(), "argument")
    if team_id is not None:
        layer["team_id"] = _Found(team_id.strip() or None, "argument")
    for name, url in urls.items():
        if url and url.strip():
            layer[name] = _Found(url.strip(), "argument")
    return layer


def _from_environment() -> _Layer:
    layer: _Layer = {}
    key = os.environ.get("PRIME_API_KEY", "").strip()
    if key:
        layer["api_key"] = _Found(key, "environment PRIME_API_KEY")
    # A variable that is set but blank is a choice: no team, no user. It is the only way to
    # act for the personal account where the file names a team.
    for name, variable in (("team_id", "PRIME_TEAM_ID"), ("user_id", "PRIME_USER_ID")):
        text = os.environ.get(variable)
        if text is not None:
            layer[name] = _Found(text.strip() or None, f"environment {variable}")
    for name, variables in _URL_VARIABLES.items():
        for variable in variables:
            text = os.environ.get(variable, "").strip()
            if text:
                layer[name] = _Found(text, f"environment {variable}")
                break
    return layer


def _from_files() -> _Layer:
    try:
        directory = Path.home() / ".prime"
    except RuntimeError:  # no home directory is known
        directory = None
    stored = _read(directory / "config.json") if directory else None
    layer = _fields(stored or {}, "file")
    by_variable = os.environ.get("PRIME_CONTEXT", "").strip()
    name = by_variable or _text(stored or {}, "current_environment") or "production"
    if name.lower() == "production":
        return _reset_to_production(layer) if by_variable else layer
    context = None
    if directory and CONTEXT_NAME.fullmatch(name):
        context = _read(directory / "environments" / f"{name}.json")
    if context is None:
        chosen_by = "PRIME_CONTEXT" if by_variable else "current_environment of config.json"
        raise ConfigurationError(
            f"The context {name!r}, taken from {chosen_by}, does not exist: there is no file "
            "of that name in ~/.prime/environments. Choose one that exists, or 'production', "
            "which is built in."
        )
    return _overlay(layer, context, f"context {name}")


def _reset_to_production(layer: _Layer) -> _Layer:
    kept = {name: found for name, found in layer.items() if name not in _URL_DEFAULTS}
    return {**kept, "team_id": _Found(None, "context production")}


def _overlay(layer: _Layer, context: Mapping[str, object], source: str) -> _Layer:
    """Lay a context over the file: only the key may be inherited from it."""
    result: _Layer = {
        "team_id": _Found(None, source),
        "user_id": _Found(None, source),
        **_fields(context, source),
    }
    if "api_key" not in context and "api_key" in layer:
        result["api_key"] = layer["api_key"]
    return result


def _fields(values: Mapping[str, object], source: str) -> _Layer:
    layer: _Layer = {}
    for name in (*_ACCOUNT_FIELDS, *_URL_DEFAULTS):
        text = _text(values, name)
        if text:
            layer[name] = _Found(text, source)
    return layer


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value.strip() if isinstance(value, str) else ""


def _read(path: Path) -> Mapping[str, object] | None:
    """Return the object in a JSON file, empty when broken; None when there is no such file."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    # RecursionError: JSON nested too deeply. ValueError: neither JSON nor text.
    except (OSError, ValueError, RecursionError) as error:
        logger.debug("%s is read as empty: %s", path, type(error).__name__)
        return {}
    if not isinstance(content, dict):
        logger.debug("%s is read as empty: it holds no JSON object", path)
        return {}
    return content


def _resolve_account(layers: tuple[_Layer, ...]) -> dict[str, _Found]:
    keys = (layer["api_key"] for layer in layers if "api_key" in layer)
    key = next(keys, _Found(None, "unset"))
    if key.value is not None:
        _check_header_text(key, "API key")
    team = _resolve_beside("team_id", key, layers)
    if team.value is not None:
        _check_header_text(team, "team id")
    return {"api_key": key, "team_id": team, "user_id": _resolve_beside("user_id", key, layers)}


def _resolve_beside(name: str, key: _Found, layers: tuple[_Layer, ...]) -> _Found:
    unset = _Found(None, "unset")
    for layer in layers:
        if name not in layer:
            continue
        found = layer[name]
        if found.value is None or layer.get("api_key", key).value == key.value:
            return found
        unset = _Found(None, f"unset: the one of {found.source} stands beside another API key")
    return unset


def _resolve_urls(layers: tuple[_Layer, ...]) -> dict[str, _Found]:
    urls: dict[str, _Found] = {}
    for name, default in _URL_DEFAULTS.items():
        candidates = (layer[name] for layer in layers if name in layer)
        urls[name] = _normalised(name, next(candidates, _Found(default, "default")))
    return urls


def _normalised(name: str, found: _Found) -> _Found:
    url = found.value or ""
    if not _is_service_url(url):
        raise ConfigurationError(
            f"The {name} taken from {found.source} is not an address of a service: it must "
            "start with http:// or https://, name a host, and hold no user, query or fragment."
        )
    url = url.rstrip("/")
    if name in _ROOT_URLS:
        url = url.removesuffix("/api/v1").rstrip("/")
    return found._replace(value=url)


def _is_service_url(url: str) -> bool:
    # urlsplit drops tabs and line ends silently, so they are refused before it sees them.
    if not _HEADER_TEXT.fullmatch(url) or "?" in url or "#" in url:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a bad port or a broken IPv6 address
        return False
    known = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return known and "@" not in parts.netloc


def _check_header_text(found: _Found, what: str) -> None:
    if not _HEADER_TEXT.fullmatch(found.value or ""):
        raise ConfigurationError(
            f"The {what} taken from {found.source} holds blanks, control characters or "
            "characters beyond ASCII, which no request header can carry. Copy it again."
        )
