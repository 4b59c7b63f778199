"""Uploads of traces over HTTP: what is stored, and every reason to refuse."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from trace_uploads import (
    METADATA,
    Uploads,
    ids,
    lines,
    multipart,
    parts,
    record,
    rows,
)

from prime_local import LocalPlatform
from prime_local.traces import validation

if TYPE_CHECKING:
    from conftest import OpenPlatform

pytestmark = pytest.mark.timeout(60)

YEAR = 365 * 24 * 3600.0
HEADER = {"type": "session", "version": 1, "id": "s1"}


@pytest.fixture
async def platform(open_platform: OpenPlatform, tmp_path: Path) -> tuple[LocalPlatform, Uploads]:
    running, client = await open_platform(data_dir=tmp_path)
    return running, Uploads(client)


@pytest.fixture
def uploads(platform: tuple[LocalPlatform, Uploads]) -> Uploads:
    return platform[1]


def episode(episode_id: Any = "e1", *traces: Any, **fields: Any) -> dict[str, Any]:
    return {"id": episode_id, "traces": list(traces), **fields}


def session(**fields: Any) -> list[dict[str, Any]]:
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return [{**HEADER, "timestamp": date, **fields}]


def zipped(data: bytes) -> bytes:
    return gzip.compress(data, 1)


async def test_lines_are_stored_as_they_came(uploads: Uploads, tmp_path: Path) -> None:
    first = b' {"id" : "a", "timing":{"start":%d}, "x": "\\u00e9\xc3\xa9"}\r\n' % time.time()
    second = b'{"timing":{"start":%d},"id":"b"}' % time.time()
    outcome = await uploads.send(first + b" \n\n" + second)
    assert outcome.status == 201
    found = rows(tmp_path, "SELECT document, size_bytes FROM documents JOIN traces ON id = trace")
    assert [row["document"] for row in found] == [first[:-1], second]
    assert [row["size_bytes"] for row in found] == [len(first) - 1, len(second)]


async def test_an_upload_may_be_gzip(uploads: Uploads, tmp_path: Path) -> None:
    data = lines(record("a", note="x" * 3_000_000), record("b"))
    # Two members, as some writers make them.
    packed = gzip.compress(data[:1000]) + gzip.compress(data[1000:])
    assert (await uploads.send(data, form=parts(packed, encoding="gzip"))).status == 201
    assert ids(tmp_path) == ["a", "b"]
    stored = rows(tmp_path, "SELECT document FROM documents ORDER BY trace")[0]["document"]
    assert stored == data.split(b"\n")[0]


async def test_parts_may_come_in_any_order_with_others(uploads: Uploads, tmp_path: Path) -> None:
    data = lines(record("a"))
    metadata, traces = parts(data)
    assert (await uploads.send(data, form=[traces, ("more", b"x", {}), metadata])).status == 201
    assert ids(tmp_path) == ["a"]


async def test_context_uploader_and_owner_are_kept(
    platform: tuple[LocalPlatform, Uploads], tmp_path: Path
) -> None:
    _, uploads = platform
    data = lines(record("a"))
    metadata = b'{"schema_version":1,"context":{"source":"nightly \xc3\xa9"},"more":1}'
    for team in (None, "team-1"):
        assert (await uploads.send(data, form=parts(data, metadata), team=team)).status == 201
    personal, teams = rows(tmp_path, "SELECT * FROM traces ORDER BY id")
    assert json.loads(personal["context"]) == {"source": "nightly é"}
    assert personal["owner"] == personal["user_id"] == teams["user_id"]
    assert (teams["owner"], teams["generation"]) == ("team-1", 1)
    assert abs(personal["ingested_at"] - time.time()) < 10


async def test_an_upload_without_lines_is_stored(uploads: Uploads, tmp_path: Path) -> None:
    await uploads.stored()
    assert ids(tmp_path) == []


@pytest.mark.parametrize("key", ["", "sha256:" + "0" * 63, "sha256:" + "A" * 64, "0" * 64])
async def test_a_key_must_be_a_digest(uploads: Uploads, key: str) -> None:
    # The body is large enough that its sender is still sending when the answer comes.
    error = await uploads.refused(record(note="x" * 8_000_000), key=key)
    assert error.startswith("400 invalid_idempotency_key: ")


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"nonsense",
        b"[1]",
        b"{}",
        b'{"schema_version":1,"context":[]}',
        b'{"schema_version":1,"context":{"a":1}}',
        b'{"schema_version":1,"context":{"a":{}}}',
        b'{"schema_version":1,"context":{"a":"%s"}}' % (b"x" * 70_000),
    ],
)
async def test_metadata_must_be_flat_text(uploads: Uploads, metadata: bytes) -> None:
    data = lines(record())
    error = (await uploads.send(data, form=parts(data, metadata))).error
    assert error.startswith("400 invalid_metadata: ")


@pytest.mark.parametrize("version", ["2", "0", "true", '"1"', "null"])
async def test_schema_version_must_be_1(uploads: Uploads, version: str) -> None:
    data = lines(record())
    metadata = f'{{"schema_version":{version}}}'.encode()
    error = (await uploads.send(data, form=parts(data, metadata))).error
    assert error.startswith("400 unsupported_schema_version: ")


async def test_each_part_must_be_there_once(uploads: Uploads) -> None:
    data = lines(record())
    metadata, traces = parts(data)
    for form in ([traces], [metadata, metadata, traces], []):
        error = (await uploads.send(data, form=form)).error
        assert error.startswith("400 invalid_metadata: "), form
    for form in ([metadata], [metadata, traces, traces]):
        error = (await uploads.send(data, form=form)).error
        assert error.startswith("400 malformed_encoding: "), form
    error = (await uploads.send(data, form=data, content_type="application/x-ndjson")).error
    assert error.startswith("400 invalid_metadata: ")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
async def test_encoding_must_be_gzip_indeed(uploads: Uploads, encoding: str) -> None:
    data = lines(record())
    error = (await uploads.send(data, form=parts(data, encoding=encoding))).error
    assert error.startswith("400 malformed_encoding: ")


async def test_gzip_must_be_complete(uploads: Uploads) -> None:
    data = lines(record())
    for packed in (gzip.compress(data)[:-9], b""):
        error = (await uploads.send(data, form=parts(packed, encoding="gzip"))).error
        assert error == "400 malformed_encoding: the gzip data broke off"


async def test_a_broken_form_is_refused(uploads: Uploads) -> None:
    data = lines(record())
    whole = multipart(parts(data))
    for form in (b"", b"nonsense", whole[: whole.index(b"timing")], whole[: len(METADATA) + 40]):
        error = (await uploads.send(data, form=form)).error
        assert error.startswith(("400 malformed_encoding: ", "400 invalid_metadata: ")), form
    kind = "multipart/form-data"
    error = (await uploads.send(data, form=whole, content_type=kind)).error
    assert error.startswith("400 malformed_encoding: ")
    # A line of a part's head that is no header.
    bad = whole.replace(b"Content-Disposition", b"\x00", 1)
    error = (await uploads.send(data, form=bad)).error
    assert error.startswith(("400 malformed_encoding: ", "400 invalid_metadata: "))


async def test_size_is_limited_uncompressed(uploads: Uploads) -> None:
    blank = b" " * (16 * 1024 * 1024 - 1) + b"\n"
    data, packed = blank * 16, zipped(blank) * 16
    assert len(data) == validation.MAX_UPLOAD_BYTES
    assert (await uploads.send(data, form=parts(packed, encoding="gzip"))).status == 201
    packed += zipped(b" ")
    error = (await uploads.send(data + b" ", form=parts(packed, encoding="gzip"))).error
    assert error.startswith("400 upload_too_large: ")


async def test_a_line_is_limited_without_its_end(uploads: Uploads) -> None:
    frame = lines(record("a", note=""))
    note = b"x" * (validation.MAX_LINE_BYTES - len(frame) + 1)
    fits = frame[:-3] + note + frame[-3:]
    assert len(fits) == validation.MAX_LINE_BYTES + 1
    long = b"\n \n" + fits[:-1] + b"\r\n"
    error = (await uploads.send(long, form=parts(zipped(long), encoding="gzip"))).error
    assert error.startswith("400 trace_too_large: line 3: ")
    assert (await uploads.send(fits, form=parts(zipped(fits), encoding="gzip"))).status == 201


async def test_text_must_be_utf_8(uploads: Uploads) -> None:
    data = lines(record("a")) + b'{"id":"b","x":"\xff","timing":{"start":1}}\n'
    assert (await uploads.send(data)).error == "400 malformed_encoding: line 2: not UTF-8"


async def test_digest_must_be_that_of_the_bytes(uploads: Uploads, tmp_path: Path) -> None:
    error = await uploads.refused(record(), key="sha256:" + "0" * 64)
    assert error.startswith("400 digest_mismatch: ")
    assert ids(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"5", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"nonsense", "not a JSON object"),
        (b'{"id":"a",}', "not valid JSON"),
        (b'{"id":"a","timing":{"start":NaN}}', "not valid JSON"),
        (b'{"x":' + b"[" * 100_000, "nested too deeply"),
        (b'{"timing":{"start":1}}', "'id' must be a non-empty string"),
        (b'{"id":"","timing":{"start":1}}', "'id' must be a non-empty string"),
        (b'{"id":5,"timing":{"start":1}}', "'id' must be a non-empty string"),
        (b'{"id":"a"}', "'timing.start' must be a finite number"),
        (b'{"id":"a","timing":5}', "'timing.start' must be a finite number"),
        (b'{"id":"a","timing":{}}', "'timing.start' must be a finite number"),
        (b'{"id":"a","timing":{"start":true}}', "'timing.start' must be a finite number"),
        (b'{"id":"a","timing":{"start":"1"}}', "'timing.start' must be a finite number"),
        (b'{"id":"a","timing":{"start":1e999}}', "'timing.start' must be a finite number"),
    ],
)
async def test_a_trace_needs_id_and_start(
    uploads: Uploads, tmp_path: Path, line: bytes, message: str
) -> None:
    data = lines(record("first")) + b"\n" + line + b"\n" + lines(record("last"))
    assert (await uploads.send(data)).error == f"400 invalid_trace: line 3: {message}"
    assert ids(tmp_path) == [], "nothing of a refused upload is stored"


async def test_unexpected_kinds_elsewhere_are_no_error(uploads: Uploads, tmp_path: Path) -> None:
    odd = record("a", nodes={}, calls=[5, None, {"usage": []}], agent="x", run=[], rewards=1)
    await uploads.stored(odd, record("b", timing={"start": time.time(), "scoring": "x"}))
    assert ids(tmp_path) == ["a", "b"]


async def test_start_must_be_in_the_window_of_the_platforms_clock(
    platform: tuple[LocalPlatform, Uploads],
) -> None:
    running, uploads = platform
    now = time.time()
    for start in (now - YEAR + 60, now + 240):
        await uploads.stored(record(timing={"start": start}))
    for start in (now - YEAR - 60, now + 360, 10**400, -(10**400)):
        error = await uploads.refused(record("a"), record(timing={"start": start}))
        message = "line 2: timing.start is outside the accepted window"
        assert error == f"400 created_at_out_of_window: {message}"
    await running.advance(120)
    await uploads.stored(record(timing={"start": now + 360}))
    error = await uploads.refused(record(timing={"start": now - YEAR + 61}))
    assert error.startswith("400 created_at_out_of_window: ")


async def test_ids_are_unique_within_an_upload(uploads: Uploads) -> None:
    error = await uploads.refused(record("a"), record("b"), record("a"))
    assert error == "400 duplicate_trace_id: line 3: an earlier trace has the same id"
    twice = episode("e1", record("a"), record("a"))
    error = await uploads.refused(twice, line_format="episode")
    assert error.startswith("400 duplicate_trace_id: line 1: ")
    error = await uploads.refused(episode("e1"), episode("e1"), line_format="episode")
    assert error == "400 duplicate_episode_id: line 2: an earlier line has the same episode id"


async def test_lines_must_have_the_declared_shape(uploads: Uploads) -> None:
    shapes = {"trace": record("a"), "episode": episode("e"), "prime_agent": session()}
    for declared in shapes:
        for shape, line in shapes.items():
            data = b"\n" + lines(line)
            outcome = await uploads.send(data, line_format=declared, team=f"{declared}-{shape}")
            if shape == declared:
                assert outcome.status == 201
            else:
                assert outcome.error.startswith("400 line_format_mismatch: line 2: ")
    error = await uploads.refused(record(), line_format="csv")
    assert error.startswith("400 line_format_mismatch: ")


async def test_rows_of_an_upload_are_limited(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "MAX_UPLOAD_TRACES", 4)
    many = [record(f"t{number}") for number in range(5)]
    assert (await uploads.refused(*many)).startswith("400 too_many_traces_in_upload: line 5: ")
    await uploads.stored(*many[:4])
    # An episode costs a row more than its traces.
    pair = [episode("e1", *many[:2]), episode("e2", *many[2:3])]
    error = await uploads.refused(*pair, line_format="episode")
    assert error.startswith("400 too_many_traces_in_upload: line 2: ")
    await uploads.stored(pair[0], episode("e2"), line_format="episode")


async def test_episodes_have_limits_of_their_own(uploads: Uploads) -> None:
    many = [record(f"t{number}") for number in range(1001)]
    cases = {
        "too_many_traces_in_episode": episode("e", *many),
        "episode_id_too_long": episode("e" * 257),
        "environment_id_too_long": episode("e", env={"id": "x" * 257}),
        "invalid_trace": episode(""),
    }
    for code, line in cases.items():
        error = await uploads.refused(episode("first"), line, line_format="episode")
        assert error.startswith(f"400 {code}: line 2: ")
    error = await uploads.refused(episode("e", record(), 5), line_format="episode")
    assert error == "400 invalid_trace: line 1: a member is not a JSON object"
    fits = episode("é" * 256, *many[:1000], env={"id": "x" * 256})
    await uploads.stored(fits, line_format="episode")


async def test_a_named_episode_must_be_in_the_upload(uploads: Uploads) -> None:
    bare = await uploads.refused(record("a"), record("b", episode_id="e9"))
    message = "line 2: episode_id is not in this upload"
    assert bare == f"400 unknown_episode_reference: {message}"
    naming = episode("e1", record("a", episode_id="e2"))
    error = await uploads.refused(naming, line_format="episode")
    assert error.startswith("400 unknown_episode_reference: line 1: ")
    await uploads.stored(naming, episode("e2"), line_format="episode")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "the first entry must be the session's header"),
        ([{"type": "message"}], "the first entry must be the session's header"),
        ([5], "the first entry must be the session's header"),
        (session(id=""), "'id' must be a non-empty string"),
        (session(timestamp="yesterday"), "'timestamp' must be a date"),
    ],
)
async def test_a_session_needs_a_header(uploads: Uploads, line: Any, message: str) -> None:
    error = await uploads.refused(line, line_format="prime_agent")
    assert error == f"400 invalid_trace: line 1: {message}"
    old = session(timestamp="2001-01-01T00:00:00Z")
    error = await uploads.refused(old, line_format="prime_agent")
    assert error.startswith("400 created_at_out_of_window: line 1: ")


async def test_checks_follow_their_order(uploads: Uploads) -> None:
    """Of several things that are wrong the first of the documented order is told."""
    good, bad = lines(record()), b"nonsense\n"
    metadata, zipped = b"{}", parts(bad, encoding="gzip")
    key = "sha256:" + "0" * 64
    steps = [
        await uploads.send(bad, key="x", form=parts(bad, metadata, "gzip")),
        await uploads.send(bad, key=key, form=parts(bad, metadata, "gzip")),
        await uploads.send(bad, key=key, form=zipped),
        await uploads.send(bad, key=key, form=zipped[::-1]),
        await uploads.send(bad, key=key),
        await uploads.send(bad),
        await uploads.send(good),
    ]
    found = [step.status if step.status < 400 else step.body["error"]["code"] for step in steps]
    assert found == [
        "invalid_idempotency_key",
        "invalid_metadata",
        "malformed_encoding",
        "malformed_encoding",
        "digest_mismatch",
        "invalid_trace",
        201,
    ]
