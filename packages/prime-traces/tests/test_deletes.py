"""Deletes are sent once, unless they surely were not processed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from raw_server import RawServer, Step, answer, closed_port, hang_up, raw, reset, silence

from prime_traces import (
    AmbiguousDeleteError,
    AsyncTracesClient,
    ConflictError,
    LineFormatConflictError,
    NotFoundError,
    RetryableAPIError,
    TransportError,
)

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_retries")]

Delete = Callable[[AsyncTracesClient], Awaitable[None]]

DELETES: list[tuple[str, Delete]] = [
    (
        "/traces/tr-1?created_at=2026-08-01T16%3A00%3A00Z",
        lambda c: c.delete("tr-1", created_at="2026-08-01T16:00:00Z"),
    ),
    ("/traces?run_id=run-1", lambda c: c.delete_run("run-1")),
    ("/traces?run_id=a&x=b", lambda c: c.api_client.delete("/traces", {"run_id": "a", "x": "b"})),
]
ACCEPTED = raw(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", close=False)


def refusal(code: str | None) -> dict[str, object]:
    return {"error": {"code": code, "message": "not now"}}


@pytest.mark.parametrize(("target", "delete"), DELETES)
async def test_a_delete_is_done_once_it_is_accepted(
    client: AsyncTracesClient, server: RawServer, target: str, delete: Delete
) -> None:
    server.steps = [ACCEPTED]
    await delete(client)
    assert server.targets == [f"DELETE /api/v1{target}"]


AMBIGUOUS: dict[str, Step] = {
    "502": answer(502),
    "504 in words": raw(b"HTTP/1.1 504 Gateway\r\nContent-Length: 4\r\n\r\nlate"),
    "500": answer(500, {"detail": "Internal Server Error"}),
    "503 of a gateway": answer(503, Retry_After="0"),
    "503 with a code that says nothing": answer(503, refusal("mesh_down"), Retry_After="0"),
    "reset": reset(),
    "hang-up": hang_up(),
    "no answer": silence(),
    "garbage": raw(b"\x00\x01\x02\r\n\r\n"),
    "an answer cut short": raw(b"HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n{"),
    "a page": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>"),
}


@pytest.mark.parametrize("step", AMBIGUOUS.values(), ids=AMBIGUOUS)
@pytest.mark.parametrize(("target", "delete"), DELETES)
async def test_a_delete_that_may_have_been_done_is_not_sent_again(
    server: RawServer, target: str, delete: Delete, step: Step
) -> None:
    server.steps = [step]
    async with AsyncTracesClient(api_key="key", base_url=server.url, timeout=0.5) as client:
        with pytest.raises(AmbiguousDeleteError, match="check before you send it again") as caught:
            await delete(client)
    assert server.targets == [f"DELETE /api/v1{target}"]
    assert caught.value.attempts == 1
    assert caught.value.operation


@pytest.mark.parametrize(
    "step",
    [
        answer(429, refusal("rate_limited"), Retry_After="0"),
        answer(503, refusal("ingest_unavailable"), Retry_After="0"),
        answer(503, refusal("auth_unavailable")),
    ],
)
async def test_a_delete_that_was_refused_for_now_is_sent_again(
    client: AsyncTracesClient,
    server: RawServer,
    step: Step,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_core.retries.THROTTLE_BASE_DELAY", 0.01)
    server.steps = [step, ACCEPTED]
    await client.delete("tr-1")
    assert len(server.requests) == 2


async def test_a_lasting_refusal_is_no_ambiguity(server: RawServer) -> None:
    server.steps = [answer(503, refusal("storage_unavailable"), Retry_After="500")]
    async with AsyncTracesClient(api_key="key", base_url=server.url) as client:
        with pytest.raises(RetryableAPIError) as caught:
            await client.delete_run("run-1")
    assert not isinstance(caught.value, AmbiguousDeleteError)
    assert (caught.value.retry_after, len(server.requests)) == (500, 1)


async def test_a_delete_that_could_not_be_sent_is_no_ambiguity() -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    async with AsyncTracesClient(api_key="key", base_url=url) as client:
        with pytest.raises(TransportError) as caught:
            await client.delete("tr-1")
    assert not isinstance(caught.value, AmbiguousDeleteError)
    assert caught.value.sent == "no"


async def test_what_is_deleted_already_is_not_found(
    either: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [answer(404, {"error": {"code": "trace_not_found", "message": "No trace"}})]
    with pytest.raises(NotFoundError, match="No trace"):
        await either.delete("tr-1")
    with pytest.raises(NotFoundError):
        await either.delete_run("run-1")
    assert len(server.requests) == 2


async def test_a_conflict_of_a_delete_is_none_of_line_formats(
    client: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [answer(409, {"error": {"code": "busy", "message": "being written"}})]
    with pytest.raises(ConflictError) as caught:
        await client.delete("tr-1")
    assert not isinstance(caught.value, LineFormatConflictError)
