"""Documents of traces and episodes, as bytes, parsed and as files, against scripted bytes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from raw_server import RawServer, Received, Step, answer, raw, response

from prime_traces import (
    APIResponseError,
    AsyncTracesClient,
    NotFoundError,
    ServerError,
)

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_retries")]

DOCUMENT = '{"id":"tr-1","text":"é","nan":NaN}'.encode()


async def test_a_document_comes_as_bytes_parsed_and_as_a_file(
    either: AsyncTracesClient, server: RawServer, tmp_path: Path
) -> None:
    server.steps = [answer(200, DOCUMENT)]
    assert await either.get_raw("tr-1") == DOCUMENT
    record = await either.get_record("tr-1")
    assert (record["text"], record["nan"] == record["nan"]) == ("é", False)
    dest = tmp_path / "new" / "trace.json"
    assert await either.download_raw("tr-1", dest) == len(DOCUMENT)
    assert dest.read_bytes() == DOCUMENT
    assert os.listdir(dest.parent) == ["trace.json"]
    assert server.targets == ["GET /api/v1/traces/tr-1?raw=true"] * 3


async def test_an_episodes_document_comes_as_bytes_and_parsed(
    either: AsyncTracesClient, server: RawServer
) -> None:
    body = {"id": "ep-1", "traces": ["tr-1"]}
    server.steps = [answer(200, body)]
    assert json.loads(await either.get_episode_raw("ep-1")) == body
    assert await either.get_episode_record("ep-1") == body
    assert server.targets == ["GET /api/v1/episodes/ep-1?raw=true"] * 2


def cut_short(request: Received) -> Step:
    return raw(response(200, b"x" * 100)[:-1])


async def test_a_document_that_breaks_off_is_not_begun_anew(
    either: AsyncTracesClient, server: RawServer, tmp_path: Path
) -> None:
    server.respond = cut_short
    dest = tmp_path / "trace.json"
    dest.write_bytes(b"old")
    with pytest.raises(APIResponseError, match="cut short"):
        await either.download_raw("tr-1", dest)
    assert (dest.read_bytes(), os.listdir(tmp_path)) == (b"old", ["trace.json"])
    with pytest.raises(APIResponseError, match="cut short"):
        await either.get_raw("tr-1")
    assert len(server.requests) == 2


async def test_a_document_is_asked_for_again_before_it_begins(
    client: AsyncTracesClient, server: RawServer, tmp_path: Path
) -> None:
    error = {"error": {"code": "storage_unavailable", "message": "storage is down"}}
    server.steps = [answer(502), answer(503, error, Retry_After="0"), answer(200, DOCUMENT)]
    assert await client.download_raw("tr-1", tmp_path / "trace.json") == len(DOCUMENT)
    server.steps = [answer(500)]
    with pytest.raises(ServerError):
        await client.download_raw("tr-1", tmp_path / "trace.json")
    assert len(server.requests) == 6
    assert (tmp_path / "trace.json").read_bytes() == DOCUMENT


async def test_a_place_that_cannot_be_written_is_told_before_anything_is_sent(
    client: AsyncTracesClient, server: RawServer, tmp_path: Path
) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        await client.download_raw("tr-1", tmp_path)
    assert server.requests == []


async def test_what_is_not_there_leaves_no_file(
    either: AsyncTracesClient, server: RawServer, tmp_path: Path
) -> None:
    error = {"error": {"code": "trace_not_found", "message": "No trace 'tr-1'"}}
    server.steps = [answer(404, error)]
    with pytest.raises(NotFoundError, match="No trace 'tr-1'"):
        await either.download_raw("tr-1", tmp_path / "trace.json")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("status", [200, 204, 206])
async def test_an_answer_that_is_no_document_leaves_the_old_file(
    either: AsyncTracesClient, server: RawServer, tmp_path: Path, status: int
) -> None:
    server.respond = lambda request: answer(status, b"x" if status == 206 else b"")
    dest = tmp_path / "trace.json"
    dest.write_bytes(b"old")
    for ask in (
        lambda: either.download_raw("tr-1", dest),
        lambda: either.get_raw("tr-1"),
        lambda: either.get_record("tr-1"),
        lambda: either.get_episode_raw("ep-1"),
        lambda: either.get_episode_record("ep-1"),
    ):
        with pytest.raises(APIResponseError) as caught:
            await ask()
        assert (caught.value.status_code, caught.value.operation is None) == (status, False)
    assert (dest.read_bytes(), os.listdir(tmp_path)) == (b"old", ["trace.json"])


async def test_a_document_that_is_no_json_cannot_be_parsed(
    either: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [answer(200, b"{"), answer(200, b"[" * 200_000), answer(200, b"\xff")]
    for _ in range(3):
        with pytest.raises(APIResponseError, match="no JSON document"):
            await either.get_record("tr-1")


async def test_a_pipe_is_refused_as_a_place_before_anything_is_sent(
    either: AsyncTracesClient, server: RawServer, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no regular file"):
        await either.download_raw("tr-1", tmp_path / "pipe")
    assert server.requests == []
    assert not (tmp_path / "pipe").is_file()
