"""What a route handler gets and gives."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from prime_local.contract import Operation
from prime_local.contract.document import JsonObject
from prime_local.core import PlatformCore

GATEWAY_PREFIX = "/gateway"


@dataclass(frozen=True)
class Call:
    """One request to an operation of the contract, already checked against it.

    `parameters` holds path and query values, `body` the JSON body of the operations that have one.
    """

    core: PlatformCore
    request: web.Request
    operation: Operation
    parameters: JsonObject
    body: Any = None

    @property
    def gateway_url(self) -> str:
        """The gateway's address as this caller can reach it."""
        return f"{self.request.scheme}://{self.request.host}{GATEWAY_PREFIX}"


@dataclass(frozen=True)
class Reply:
    """A JSON answer, or raw bytes of another content type."""

    body: JsonObject | bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def data(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, separators=(",", ":")).encode()


Handler = Callable[[Call], Awaitable[Reply | web.StreamResponse]]
