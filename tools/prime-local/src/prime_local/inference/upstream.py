"""Another server behind the inference service: any that speaks OpenAI's chat completions."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from prime_local.contract.document import JsonObject
from prime_local.inference.errors import InferenceError

KEY_VARIABLE = "INFERENCE_UPSTREAM_API_KEY"
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=600)
_TAIL_BYTES = 8 * 1024
_TOTALS = re.compile(rb"^data: ?(\{.*\"usage\": ?\{.*\})\s*$", re.MULTILINE)


class Upstream:
    """A server to pass requests on to.

    Its key is taken from the variable INFERENCE_UPSTREAM_API_KEY, if there is one.

    Args:
        url: what comes before `/models` and `/chat/completions`.

    Raises:
        ValueError: that is no http address.
    """

    def __init__(self, url: str) -> None:
        if URL(url).scheme not in ("http", "https") or not URL(url).host:
            raise ValueError(f"the inference upstream must be an http address, not {url!r}")
        self._url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def models(self) -> list[JsonObject]:
        """Return the entries of its catalogue.

        Raises:
            InferenceError: 502.
        """
        async with self._request("GET", "/models") as response:
            answer = await read_json(response)
        entries = answer.get("data") if isinstance(answer, dict) else None
        if response.status != 200 or not isinstance(entries, list):
            raise _failed(f"its catalogue cannot be read (HTTP {response.status})")
        named = (each for each in entries if isinstance(each, dict) and "id" in each)
        return [{"serving": "gateway", **entry} for entry in named]

    @asynccontextmanager
    async def complete(self, body: JsonObject) -> AsyncIterator[aiohttp.ClientResponse]:
        """Pass a request for a completion on.

        Raises:
            InferenceError: 502.
        """
        # Others do not know the extension; they count without being asked, but for streams.
        passed = {name: value for name, value in body.items() if name != "usage"}
        if body.get("stream") and body.get("usage", {}).get("include"):
            passed["stream_options"] = {
                **(body.get("stream_options") or {}),
                "include_usage": True,
            }
        async with self._request("POST", "/chat/completions", passed) as response:
            yield response

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, body: JsonObject | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT)
        key = os.environ.get(KEY_VARIABLE)
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else msgspec.json.encode(body)
        try:
            response = await self._session.request(
                method, self._url + path, data=data, headers=headers, allow_redirects=False
            )
        except aiohttp.ClientError as error:
            raise _failed(f"it cannot be reached ({type(error).__name__})") from error
        async with response:
            yield response


async def read_json(response: aiohttp.ClientResponse) -> Any:
    """Return the answer, or None when it is no JSON.

    Raises:
        InferenceError: 502, it broke off.
    """
    try:
        return msgspec.json.decode(await response.read())
    except msgspec.DecodeError:
        return None
    except aiohttp.ClientError as error:
        raise _failed(f"its answer broke off ({type(error).__name__})") from error


class Tail:
    """Remembers the end of a stream, where the counts are."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, piece: bytes) -> None:
        self._data = (self._data + piece)[-_TAIL_BYTES:]

    def usage(self) -> JsonObject:
        """Return the counts, or nothing when there were none."""
        found = _TOTALS.findall(self._data)
        try:
            chunk = msgspec.json.decode(found[-1]) if found else {}
        except msgspec.DecodeError:
            chunk = {}
        return chunk.get("usage") or {}


def _failed(what: str) -> InferenceError:
    return InferenceError(502, f"The upstream server failed: {what}", kind="server_error")
