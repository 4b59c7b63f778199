"""What a route handler gets and gives."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from prime_local.account.keys import ApiKey
from prime_local.assumptions import Assumptions
from prime_local.contract import Operation
from prime_local.contract.document import JsonObject
from prime_local.core import PlatformCore
from prime_local.faults import FaultRule

GATEWAY_PREFIX = "/gateway"


@dataclass(frozen=True)
class Call:
    """One request to an operation of the contract, already checked against it.

    `parameters` holds path and query values, `body` the JSON body of the operations that have one,
    `fault` the rule that spoils it. `inference_id` is the X-Inference-Id of a request to models.
    """

    core: PlatformCore
    request: web.Request
    operation: Operation
    parameters: JsonObject
    body: Any = None
    fault: FaultRule | None = None
    inference_id: str = ""

    @property
    def assumptions(self) -> Assumptions:
        return self.core.settings.assumptions

    @property
    def api_key(self) -> ApiKey:
        """The key that the caller was let in with."""
        key = self.core.account.keys.find(bearer(self.request))
        assert key is not None
        return key

    @property
    def gateway_url(self) -> str:
        """The gateway's address as this caller can reach it."""
        end = "/" if self.assumptions.gateway_url == "slash" else ""
        return f"{self.request.scheme}://{self.request.host}{GATEWAY_PREFIX}{end}"


def bearer(request: web.Request) -> str:
    """Return the token that a request brings; empty without one."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(frozen=True)
class Reply:
    """A JSON answer, or raw bytes of another content type.

    `contract_status` names the answer of the contract that this one is, where an assumption gives
    it another status. The names in the body of a map are data: a newer server adds none of its own.
    """

    body: JsonObject | bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    contract_status: int | None = None
    is_map: bool = False

    def data(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, separators=(",", ":")).encode()


def http_response(reply: Reply) -> web.Response:
    # A message of no bytes has its type, too; these answers are no messages.
    bare = reply.status == 204 or (reply.status == 202 and reply.body == b"")
    kind = {} if bare else {"Content-Type": reply.content_type}
    return web.Response(body=reply.data(), status=reply.status, headers={**reply.headers, **kind})


Handler = Callable[[Call], Awaitable[Reply | web.StreamResponse]]
