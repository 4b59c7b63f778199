"""What an upload must be; verdicts depend on its bytes and the platform's clock alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeVar, get_args

import msgspec
from msgspec import UNSET, Raw

from prime_local.traces.derivation import (
    Derived,
    EpisodeFacts,
    derive_episode,
    derive_trace,
    text,
)
from prime_local.traces.records import EpisodeRecord, SessionEntry, TraceRecord, read
from prime_local.traces.redaction import redact
from prime_local.traces.sessions import derive_session, seconds

LineFormat = Literal["trace", "episode", "prime_agent"]
T = TypeVar("T")

MAX_UPLOAD_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_UPLOAD_TRACES = 1_000_000
MAX_EPISODE_TRACES = 1_000
MAX_ID_CHARACTERS = 256
MAX_METADATA_BYTES = 64 * 1024
_OLDEST_SECONDS = 365 * 24 * 3600.0
_NEWEST_SECONDS = 300.0
_KEY = re.compile(r"sha256:([0-9a-f]{64})")


class Rejected(Exception):
    """An upload that is refused for good.

    Args:
        code: the service's error code.
        message: what is wrong, with the line it is in.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Metadata:
    """The metadata part of an upload."""

    schema_version: int
    context: dict[str, str]


@dataclass(frozen=True)
class Line:
    """What one line stores: a trace, or an episode with its members.

    `documents` has one document per trace. `envelope` is the episode without its members' records.
    """

    traces: list[Derived]
    documents: list[bytes]
    episode: EpisodeFacts | None = None
    envelope: bytes = b""


def check_key(key: str | None) -> str:
    """Return the digest that an idempotency key names.

    Raises:
        Rejected: `invalid_idempotency_key`.
    """
    match = _KEY.fullmatch(key or "")
    if match is None:
        message = "Idempotency-Key must be sha256: and 64 lower-case hex digits"
        raise Rejected("invalid_idempotency_key", message)
    return match[1]


def check_line_format(name: str | None) -> LineFormat:
    """Return the format that a header names; without one it is `trace`.

    Raises:
        Rejected: `line_format_mismatch`.
    """
    for known in get_args(LineFormat):
        if name in (None, known):
            found: LineFormat = known
            return found
    known = ", ".join(get_args(LineFormat))
    raise Rejected("line_format_mismatch", f"X-Prime-Line-Format must be one of {known}")


def check_metadata(data: bytes) -> Metadata:
    """Read the metadata part.

    Raises:
        Rejected: `invalid_metadata` or `unsupported_schema_version`.
    """
    if len(data) > MAX_METADATA_BYTES:
        raise Rejected("invalid_metadata", f"metadata is larger than {MAX_METADATA_BYTES} bytes")
    try:
        metadata = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict) or "schema_version" not in metadata:
        message = "metadata must be a JSON object with schema_version"
        raise Rejected("invalid_metadata", message)
    context = metadata.get("context", {})
    if not isinstance(context, dict) or not all(isinstance(v, str) for v in context.values()):
        raise Rejected("invalid_metadata", "context must be a flat object of strings")
    version = metadata["schema_version"]
    if version is True or version != 1:
        raise Rejected("unsupported_schema_version", "schema_version must be 1")
    return Metadata(1, context)


@dataclass
class UploadChecks:
    """Checks the lines of one upload, in order, and derives what they store.

    Args:
        line_format: the declared shape of every line.
        now: the platform's date, in seconds since 1970.
    """

    line_format: LineFormat
    now: float
    _number: int = 0
    _rows: int = 0
    _traces: set[str] = field(default_factory=set)
    _episodes: set[str] = field(default_factory=set)
    _references: dict[str, int] = field(default_factory=dict)  # episode id: first line with it

    def lines(self, source: Iterable[bytes]) -> Iterator[Line]:
        """Yield what each line stores; lines of white space are skipped.

        Raises:
            Rejected: the first line that is wrong, or a reference that no line answers.
        """
        for self._number, raw in enumerate(source, 1):
            data = raw.rstrip(b"\n")
            if len(data) > MAX_LINE_BYTES:
                self._reject("trace_too_large", f"more than {MAX_LINE_BYTES} bytes")
            if data.strip():
                yield self._line(data)
        for episode_id, number in self._references.items():
            if episode_id not in self._episodes:
                self._number = number
                self._reject("unknown_episode_reference", "episode_id is not in this upload")

    def _line(self, data: bytes) -> Line:
        try:
            document = data.decode()
        except UnicodeDecodeError:
            self._reject("malformed_encoding", "not UTF-8")
        self._check_shape(data)
        if self.line_format == "episode":
            return self._episode(document)
        if self.line_format == "prime_agent":
            return self._session(document)
        record = self._parse(data, TraceRecord)
        if record.traces is not UNSET and bytes(record.traces)[:1] == b"[":
            self._reject("line_format_mismatch", "an episode, not a trace")
        return self._trace(document, record)

    def _check_shape(self, data: bytes) -> None:
        first = data.lstrip()[:1]
        if (first == b"[") != (self.line_format == "prime_agent") and first in b"[{":
            kind = "an array" if first == b"[" else "an object"
            self._reject("line_format_mismatch", f"{kind}, not a line of {self.line_format}")
        if first not in b"[{":
            self._reject("invalid_trace", "not a JSON object")

    def _trace(self, document: str, record: TraceRecord) -> Line:
        self._count(1)
        self._check_trace(record)
        redacted = redact(document)
        if redacted is not document:
            record = self._parse(redacted.encode(), TraceRecord)
        return Line([derive_trace(record)], [redacted.encode()])

    def _check_trace(self, record: TraceRecord) -> None:
        self._check_id(record.id)
        self._new_trace(record.id)
        start = record.timing.start if record.timing else None
        if isinstance(start, bool) or not isinstance(start, (int, float)):
            self._reject("invalid_trace", "'timing.start' must be a finite number")
        self._check_window(start, "timing.start")
        episode_id = text(record.episode_id)
        if episode_id is not None:
            self._references.setdefault(episode_id, self._number)

    def _episode(self, document: str) -> Line:
        record = self._parse(document.encode(), EpisodeRecord)
        self._check_episode(record)
        members = self._members(record)
        for member in members:
            self._check_trace(member)
        redacted = redact(document)
        if redacted is not document:
            record = self._parse(redacted.encode(), EpisodeRecord)
            members = self._members(record)
        traces = [derive_trace(member) for member in members]
        facts = derive_episode(record, [trace.facts for trace in traces])
        parts = msgspec.json.decode(redacted, type=dict[str, Raw])
        ids = [trace.facts.trace_id for trace in traces]
        envelope = msgspec.json.encode({**parts, "traces": ids})
        return Line(traces, [bytes(source) for source in record.traces or ()], facts, envelope)

    def _check_episode(self, record: EpisodeRecord) -> None:
        if record.traces is None:
            self._reject("line_format_mismatch", "no episode: 'traces' is not an array")
        self._count(1 + len(record.traces))
        if len(record.traces) > MAX_EPISODE_TRACES:
            message = f"more than {MAX_EPISODE_TRACES} traces in an episode"
            self._reject("too_many_traces_in_episode", message)
        self._check_id(record.id)
        self._check_length(record.id, "episode_id_too_long")
        self._check_length(record.env.id if record.env else None, "environment_id_too_long")
        if record.id in self._episodes:
            self._reject("duplicate_episode_id", "an earlier line has the same episode id")
        self._episodes.add(record.id)

    def _members(self, record: EpisodeRecord) -> list[TraceRecord]:
        sources = record.traces or ()
        if not all(bytes(source).startswith(b"{") for source in sources):
            self._reject("invalid_trace", "a member is not a JSON object")
        return [self._parse(source, TraceRecord) for source in sources]

    def _session(self, document: str) -> Line:
        self._count(1)
        entries = self._entries(document)
        header = entries[0] if entries else SessionEntry()
        if header.type != "session":
            self._reject("invalid_trace", "the first entry must be the session's header")
        self._check_id(header.id)
        self._new_trace(header.id)
        start = seconds(header.timestamp)
        if start is None:
            self._reject("invalid_trace", "'timestamp' must be a date")
        self._check_window(start, "timestamp")
        redacted = redact(document)
        if redacted is not document:
            entries = self._entries(redacted)
        return Line([derive_session(entries[0], entries[1:])], [redacted.encode()])

    def _entries(self, document: str) -> list[SessionEntry]:
        entries = self._parse(document.encode(), list[SessionEntry | None])
        return [entry or SessionEntry() for entry in entries]

    def _parse(self, source: bytes | Raw, kind: type[T]) -> T:
        try:
            found = read(source, kind)
        except msgspec.DecodeError:
            self._reject("invalid_trace", "not valid JSON")
        except RecursionError:
            self._reject("invalid_trace", "nested too deeply")
        assert found is not None, "its shape was checked"
        return found

    def _check_id(self, value: Any) -> None:
        if not isinstance(value, str) or not value:
            self._reject("invalid_trace", "'id' must be a non-empty string")

    def _check_length(self, value: Any, code: str) -> None:
        if isinstance(value, str) and len(value) > MAX_ID_CHARACTERS:
            self._reject(code, f"more than {MAX_ID_CHARACTERS} characters")

    def _check_window(self, start: float, name: str) -> None:
        if not self.now - _OLDEST_SECONDS <= start <= self.now + _NEWEST_SECONDS:
            message = f"{name} is outside the accepted window"
            self._reject("created_at_out_of_window", message)

    def _new_trace(self, trace_id: str) -> None:
        if trace_id in self._traces:
            self._reject("duplicate_trace_id", "an earlier trace has the same id")
        self._traces.add(trace_id)

    def _count(self, rows: int) -> None:
        self._rows += rows
        if self._rows > MAX_UPLOAD_TRACES:
            self._reject("too_many_traces_in_upload", f"more than {MAX_UPLOAD_TRACES} rows")

    def _reject(self, code: str, message: str) -> NoReturn:
        raise Rejected(code, f"line {self._number}: {message}")
