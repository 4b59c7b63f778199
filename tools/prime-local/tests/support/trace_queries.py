"""Traces over plain HTTP: small records, uploads and reads."""

from __future__ import annotations

import hashlib
import json
import time
import urllib.parse
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp

from prime_local import LocalPlatform

# A whole second of yesterday: inside the accepted window, and the same for a whole test.
START = float(int(time.time()) - 86_400)


def trace(trace_id: str, *, start: float = 0.0, **fields: Any) -> dict[str, Any]:
    """Return a trace record that began `start` seconds after START."""
    return {"id": trace_id, "timing": {"start": START + start}, "ok": True, **fields}


def scored(trace_id: str, reward: float | None, **fields: Any) -> dict[str, Any]:
    rewards = {} if reward is None else {"solved": {"score": reward}}
    return trace(trace_id, rewards=rewards, **fields)


def episode(episode_id: str, *traces: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": episode_id, "ok": True, "traces": list(traces), **fields}


def saying(trace_id: str, *contents: Any, run: str = "run-1", **fields: Any) -> dict[str, Any]:
    """Return a trace of a run whose messages have these contents."""
    nodes = [{"message": {"role": "user", "content": content}} for content in contents]
    return trace(trace_id, run={"id": run}, nodes=nodes, **fields)


class Traces:
    """The traces service of a local platform."""

    def __init__(
        self, platform: LocalPlatform, session: aiohttp.ClientSession, team: str | None = None
    ) -> None:
        self.platform = platform
        self.session = session
        self.url = platform.env["PRIME_TRACES_URL"] + "/api/v1"
        self.headers = {"Authorization": f"Bearer {platform.api_key}"}
        if team is not None:
            self.headers["X-Prime-Team-ID"] = team

    def of_team(self, team: str) -> Traces:
        return Traces(self.platform, self.session, team)

    async def hold_index(self, held: bool) -> None:
        await self.platform.set_traces(hold_index=held)

    async def upload(
        self,
        *records: dict[str, Any],
        line_format: str = "trace",
        context: dict[str, str] | None = None,
    ) -> str:
        """Upload records as one batch; return the upload id."""
        lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        return await self.upload_bytes(lines, line_format=line_format, context=context)

    async def upload_bytes(
        self, lines: bytes, *, line_format: str = "trace", context: dict[str, str] | None = None
    ) -> str:
        form = aiohttp.FormData()
        metadata = {"schema_version": 1, **({"context": context} if context else {})}
        form.add_field("metadata", json.dumps(metadata), content_type="application/json")
        form.add_field(
            "traces", lines, filename="traces.jsonl", content_type="application/x-ndjson"
        )
        headers = {
            **self.headers,
            "Idempotency-Key": "sha256:" + hashlib.sha256(lines).hexdigest(),
            "X-Prime-Line-Format": line_format,
        }
        async with self.session.post(f"{self.url}/traces", data=form, headers=headers) as answer:
            body = await answer.json()
            assert answer.status == 201, body
            upload_id: str = body["upload_id"]
            return upload_id

    async def ask(self, method: str, path: str, **parameters: Any) -> tuple[int, Any]:
        """Return status and body; lists travel as repeated parameters, flags as words."""
        pairs = [
            (name, str(value).lower() if isinstance(value, bool) else value)
            for name, values in parameters.items()
            for value in (values if isinstance(values, list) else [values])
        ]
        url = f"{self.url}/{path}?{urllib.parse.urlencode(pairs)}"
        async with self.session.request(method, url, headers=self.headers) as answer:
            data = await answer.read()
            return answer.status, json.loads(data) if data else None

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the body of an answer that must be a success."""
        status, body = await self.ask("GET", path, **parameters)
        assert status == 200, (path, parameters, body)
        return body

    async def refused(self, path: str, method: str = "GET", /, **parameters: Any) -> str:
        """Return status and code of an answer that must be an error."""
        status, body = await self.ask(method, path, **parameters)
        assert status >= 400, body
        assert isinstance(body["error"]["message"], str)
        return f"{status} {body['error']['code']}"

    async def pages(self, path: str, **parameters: Any) -> AsyncIterator[Any]:
        """Walk a list to its end."""
        cursor: dict[str, str] = {}
        while True:
            page = await self.get(path, **parameters, **cursor)
            yield page
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    async def items(self, path: str, **parameters: Any) -> list[Any]:
        return [item async for page in self.pages(path, **parameters) for item in page["items"]]

    async def ids(self, path: str, key: str = "trace_id", /, **parameters: Any) -> list[str]:
        return [item[key] for item in await self.items(path, **parameters)]


def text_of(match: dict[str, Any]) -> str:
    """Return what a search match points at in its excerpt."""
    start = match["match_start"] - match["excerpt_start"]
    found: str = match["excerpt"][start : start + match["match_end"] - match["match_start"]]
    return found


def sorted_ids(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(row["trace_id"] for row in rows)
