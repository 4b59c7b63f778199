"""The platform's control plane, as run logging calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prime_core._async.api_client import AsyncAPIClient
from prime_core.decoding import JSONObject, read_object
from prime_core.operations import Operation

__all__ = ["ControlPlane"]


class ControlPlane:
    """Calls routes of the control plane with JSON bodies.

    Args:
        client: the connections.
        internal: whether they lead to the root that the platform gives its own workers, which
            has the routes under another name and wants the key in a header of its own too.
    """

    def __init__(self, client: AsyncAPIClient, *, internal: bool = False) -> None:
        self._transport = client._share(self)
        self._client = client
        self._headers = {"x-api-key": client.config.api_key} if internal else None

    async def call(
        self,
        operation: Operation,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        path: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> JSONObject:
        """Calls a route and returns its answer.

        Raises:
            APIError: one of its subclasses says what failed.
        """
        if self._headers is not None:
            internal = operation.path.replace("/api/v1", "/api/internal", 1)
            operation = replace(operation, path=internal)
        if body is not None and not isinstance(body, bytes):
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            body = text.encode()
        call = self._transport.prepare(
            operation, read_object, path, body=body, timeout=timeout, headers=self._headers
        )
        return await self._transport.perform(call)

    async def aclose(self) -> None:
        """Gives the connections back."""
        await self._client._release(self)
