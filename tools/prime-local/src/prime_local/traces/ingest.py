"""Stores uploads: every line of one, or none."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from prime_local.calls import Call, Reply
from prime_local.traces.derivation import CallRow, Derived, EpisodeFacts, NodeRow, TraceFacts
from prime_local.traces.errors import traces_error
from prime_local.traces.receiving import Spool, receive
from prime_local.traces.service import TracesService
from prime_local.traces.validation import (
    Line,
    LineFormat,
    Metadata,
    Rejected,
    UploadChecks,
    check_key,
    check_line_format,
)

Row = tuple[object, ...]


def _insert(table: str, columns: Sequence[str]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


_UPLOAD_COLUMNS = (
    *("owner", "digest", "line_format", "schema_version", "context", "user_id", "ingested_at"),
)
_TRACE_COLUMNS = (
    *("owner", "generation", "newest", "digest", "ingested_at", "context", "user_id"),
    *("indexed_at", "episode_id", "environment_id", "size_bytes", "capped", *TraceFacts._fields),
)
_EPISODE_COLUMNS = (
    *("owner", "generation", "newest", "digest", "ingested_at", "schema_version", "created_at"),
    *("document", *EpisodeFacts._fields),
)
_INSERT_UPLOAD = _insert("uploads", _UPLOAD_COLUMNS)
_INSERT_TRACE = _insert("traces", _TRACE_COLUMNS)
_INSERT_DOCUMENT = _insert("documents", ("trace", "document"))
_INSERT_EPISODE = _insert("episodes", _EPISODE_COLUMNS)
_INSERT_NODE = _insert("nodes", ("trace", *NodeRow._fields))
_INSERT_CALL = _insert("calls", ("trace", *CallRow._fields))


@dataclass(frozen=True)
class Upload:
    """What is known of an upload before its lines are read."""

    owner: str
    digest: str
    line_format: LineFormat
    metadata: Metadata


async def upload_traces(call: Call) -> Reply:
    """Store an upload, and answer its receipt once it is committed."""
    traces, headers = call.core.traces, call.request.headers
    spool = Spool(traces.folder)
    try:
        digest = check_key(headers.get("Idempotency-Key"))
        line_format = check_line_format(headers.get("X-Prime-Line-Format"))
        metadata = await receive(call.request, spool)
        if spool.digest != digest:
            message = "Idempotency-Key does not match the traces part"
            raise Rejected("digest_mismatch", message)
        owner = traces.owner(headers.get("X-Prime-Team-ID"))
        upload = Upload(owner, digest, line_format, metadata)
        await traces.store.write(partial(_store, traces=traces, upload=upload, spool=spool))
    except Rejected as error:
        raise traces_error(400, error.code, error.message) from error
    finally:
        spool.close()
    return Reply({"upload_id": digest, "status": "committed"}, 201)


def _store(
    connection: sqlite3.Connection, traces: TracesService, upload: Upload, spool: Spool
) -> None:
    """Store an upload, unless it is stored already.

    Raises:
        Rejected: a line is wrong.
        PlatformError: 409 `line_format_conflict`, or 402 over the storage limit.
    """
    earlier = connection.execute(
        "SELECT line_format FROM uploads WHERE owner = ? AND digest = ?",
        (upload.owner, upload.digest),
    ).fetchone()
    if earlier is not None:
        if earlier[0] != upload.line_format:
            message = f"upload already exists with line format '{earlier[0]}'"
            raise traces_error(409, "line_format_conflict", message)
        return
    # Read here, where one upload follows another: the newest copy is the one ingested last.
    now = traces.now()
    writer = _Writer(connection, traces, upload, now)
    for line in UploadChecks(upload.line_format, now).lines(spool.lines()):
        writer.add(line)
    _check_limit(connection, traces, upload.owner)


class _Writer:
    """Writes one upload."""

    def __init__(
        self, connection: sqlite3.Connection, traces: TracesService, upload: Upload, now: float
    ) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany
        self._upload = upload
        self._now = now
        self._indexed_at = traces.indexed_at(now)
        self._context = json.dumps(upload.metadata.context, ensure_ascii=False)
        self._user_id = traces.user_id
        version = upload.metadata.schema_version
        self._execute(
            _INSERT_UPLOAD,
            (
                *(upload.owner, upload.digest, upload.line_format, version),
                *(self._context, self._user_id, now),
            ),
        )

    def add(self, line: Line) -> None:
        """Write what a line stores."""
        for trace, document in zip(line.traces, line.documents, strict=True):
            self._add_trace(trace, document, line.episode)
        if line.episode is not None:
            self._add_episode(line.episode, line.envelope, line.traces)

    def _add_trace(self, trace: Derived, document: bytes, episode: EpisodeFacts | None) -> None:
        generation = self._replace("traces", "trace_id", trace.facts.trace_id)
        upload = self._upload
        row_id = self._execute(
            _INSERT_TRACE,
            (
                *(upload.owner, generation, True, upload.digest, self._now),
                *(self._context, self._user_id, self._indexed_at),
                *((episode.episode_id, episode.environment_id) if episode else (None, None)),
                *(len(document), trace.capped, *trace.facts),
            ),
        ).lastrowid
        self._execute(_INSERT_DOCUMENT, (row_id, document))
        self._execute_many(_INSERT_NODE, _numbered(row_id, trace.nodes))
        self._execute_many(_INSERT_CALL, _numbered(row_id, trace.calls))

    def _add_episode(
        self, episode: EpisodeFacts, envelope: bytes, members: Sequence[Derived]
    ) -> None:
        generation = self._replace("episodes", "episode_id", episode.episode_id)
        upload = self._upload
        created_at = min((member.facts.created_at for member in members), default=self._now)
        self._execute(
            _INSERT_EPISODE,
            (
                *(upload.owner, generation, True, upload.digest, self._now),
                *(upload.metadata.schema_version, created_at, envelope, *episode),
            ),
        )

    def _replace(self, table: str, column: str, value: str) -> int:
        """Let a further copy take the place of the newest one; returns its generation."""
        key = (self._upload.owner, value)
        (last,) = self._execute(
            f"SELECT max(generation) FROM {table} WHERE owner = ? AND {column} = ?", key
        ).fetchone()
        if last is None:
            return 1
        self._execute(
            f"UPDATE {table} SET newest = 0 WHERE owner = ? AND {column} = ? AND newest", key
        )
        return int(last) + 1


def _numbered(trace: int | None, rows: Iterable[Row]) -> Iterable[Row]:
    return ((trace, *row) for row in rows)


def _check_limit(connection: sqlite3.Connection, traces: TracesService, owner: str) -> None:
    limit = traces.switches.storage_limit
    if limit is None:
        return
    (stored,) = connection.execute(
        "SELECT total(size_bytes) FROM traces WHERE owner = ?", (owner,)
    ).fetchone()
    if stored > limit:
        raise traces_error(402, None, f"over the storage limit of {limit} bytes")
