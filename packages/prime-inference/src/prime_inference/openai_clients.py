"""The OpenAI SDK, set up for the platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prime_core.config import Config
from prime_core.errors import ConfigurationError

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["async_openai_client", "openai_client"]


def openai_client(
    api_key: str | None = None,
    *,
    team_id: str | None = None,
    config: Config | None = None,
    **options: Any,
) -> OpenAI:
    """Makes a client of the OpenAI SDK with the platform's address, key and team.

    It sends nothing again unless ``max_retries`` says so: the SDK would also repeat what may
    have been processed, and paid for. Needs the extra ``openai``.

    Follows the documented page "inference/overview".

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        team_id: the team that pays, by default the configured one; "" is the personal account.
        config: a ready configuration, in place of ``api_key`` and ``team_id``.
        options: what `openai.OpenAI` takes besides, such as ``timeout`` and ``max_retries``.

    Raises:
        ConfigurationError: there is no API key.
        ImportError: the OpenAI SDK is not installed.
        ValueError: a ``base_url``, which is the platform's.
    """
    from openai import OpenAI

    return OpenAI(**_options(api_key, team_id, config, options))


def async_openai_client(
    api_key: str | None = None,
    *,
    team_id: str | None = None,
    config: Config | None = None,
    **options: Any,
) -> AsyncOpenAI:
    """Makes an asynchronous client of the OpenAI SDK; as `openai_client`.

    Args:
        api_key: as there.
        team_id: as there.
        config: as there.
        options: what `openai.AsyncOpenAI` takes besides.

    Raises:
        ConfigurationError: there is no API key.
        ImportError: the OpenAI SDK is not installed.
    """
    from openai import AsyncOpenAI

    return AsyncOpenAI(**_options(api_key, team_id, config, options))


# Who pays at OpenAI: nobody else is to be told.
_ACCOUNT = {"organization": "OpenAI-Organization", "project": "OpenAI-Project"}


def _options(
    api_key: str | None, team_id: str | None, config: Config | None, options: dict[str, Any]
) -> dict[str, Any]:
    from openai import Omit

    if config is not None and (api_key is not None or team_id is not None):
        raise ValueError("pass config, or api_key and team_id, not both")
    found = config or Config(api_key, team_id=team_id)
    if not found.api_key:
        raise ConfigurationError(
            "No API key: set PRIME_API_KEY, pass api_key=, or log in with the CLI."
        )
    if "base_url" in options:
        raise ValueError(
            "base_url is the platform's here: set PRIME_INFERENCE_URL, or pass "
            "config=Config(inference_url=...)"
        )
    headers: dict[str, Any] = {}
    if found.team_id:
        headers["X-Prime-Team-ID"] = found.team_id
    for name, header in _ACCOUNT.items():  # the SDK takes them from the environment, too
        if options.get(name) is None:
            headers[header] = Omit()
    headers.update(options.get("default_headers") or {})
    return {
        "max_retries": 0,
        **options,
        "api_key": found.api_key,
        "base_url": found.inference_url,
        "default_headers": headers,
    }
