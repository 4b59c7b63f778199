"""Transports for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rows import KEY

from prime_core.config import Config
from prime_core.transport import AsyncTransport, TransportSettings

Connect = Callable[..., AsyncTransport]


def transport_to(base_url: str, team_id: str | None = None, **settings: Any) -> AsyncTransport:
    """A transport with the tests' key; the caller closes it."""
    config = Config(KEY, team_id=team_id, base_url=base_url)
    return AsyncTransport(config, TransportSettings(**settings))
