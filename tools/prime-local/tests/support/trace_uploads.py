"""Uploads of traces over plain HTTP, and what is stored of them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import RawClient

METADATA = b'{"schema_version":1}'
BOUNDARY = "a-boundary"
Part = tuple[str, bytes, Mapping[str, str]]


def record(trace_id: str = "t1", **fields: Any) -> dict[str, Any]:
    """Return a trace that began ten seconds ago."""
    return {"id": trace_id, "timing": {"start": time.time() - 10}, **fields}


def lines(*records: object) -> bytes:
    return b"".join(
        json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for each in records
    )


def key_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def parts(data: bytes, metadata: bytes = METADATA, encoding: str | None = None) -> list[Part]:
    """Return the parts of an ordinary upload."""
    extra = {} if encoding is None else {"Content-Encoding": encoding}
    return [("metadata", metadata, {}), ("traces", data, extra)]


def multipart(pieces: list[Part]) -> bytes:
    body = b""
    for name, data, headers in pieces:
        head = {"Content-Disposition": f'form-data; name="{name}"', **headers}
        text = "".join(f"{field}: {value}\r\n" for field, value in head.items())
        body += f"--{BOUNDARY}\r\n{text}\r\n".encode() + data + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


@dataclass(frozen=True)
class Outcome:
    """How the platform answered an upload."""

    status: int
    body: Any

    @property
    def error(self) -> str:
        """Status, code and message of an error in one line."""
        return f"{self.status} {self.body['error']['code']}: {self.body['error']['message']}"


class Uploads:
    """Sends uploads to a platform, well formed or not."""

    def __init__(self, client: RawClient) -> None:
        self._client = client

    async def send(
        self,
        data: bytes,
        *,
        key: str | None = None,
        form: list[Part] | bytes | None = None,
        line_format: str | None = None,
        team: str | None = None,
        content_type: str = f"multipart/form-data; boundary={BOUNDARY}",
    ) -> Outcome:
        """Upload `data`; the other arguments put something else in the place of what is right."""
        headers = {
            **self._client.key,
            "Idempotency-Key": key_of(data) if key is None else key,
            "Content-Type": content_type,
        }
        if line_format is not None:
            headers["X-Prime-Line-Format"] = line_format
        if team is not None:
            headers["X-Prime-Team-ID"] = team
        form = parts(data) if form is None else form
        body = form if isinstance(form, bytes) else multipart(form)
        url = f"{self._client.url}/traces/api/v1/traces"
        async with self._client.session.post(url, data=body, headers=headers) as response:
            return Outcome(response.status, await response.json())

    async def stored(self, *records: object, **options: Any) -> str:
        """Upload records that must be stored; return the upload id."""
        data = lines(*records)
        outcome = await self.send(data, **options)
        assert outcome.status == 201, outcome.body
        assert outcome.body == {"upload_id": key_of(data)[7:], "status": "committed"}
        return key_of(data)[7:]

    async def refused(self, *records: object, **options: Any) -> str:
        """Upload records that must be refused; return what the platform says."""
        return (await self.send(lines(*records), **options)).error


def rows(data_dir: Path, query: str, *values: object) -> list[dict[str, Any]]:
    """Read a running platform's store."""
    uri = (data_dir / "traces.sqlite3").as_uri() + "?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query, values)]


def ids(data_dir: Path) -> list[str]:
    """Return the ids of the newest copies, sorted."""
    found = rows(data_dir, "SELECT trace_id FROM traces WHERE newest ORDER BY trace_id")
    return [row["trace_id"] for row in found]
