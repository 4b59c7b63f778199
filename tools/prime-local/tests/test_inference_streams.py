"""Streams of completions: their odd forms, their ends, and readers who are slow or leave."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, get_args

import aiohttp
import pytest
from model_calls import CHAT, ECHO, asking, stream_text

from prime_local import FaultRule, LocalPlatform
from prime_local.faults import StreamForm
from prime_local.inference import forms

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

OPERATION = "create_chat_completion"
PAYLOADS = [b'{"a":1,"choices":[{"delta":{"content":"x"}}]}', b'{"b":2}', b"[DONE]"]
FIRST, SECOND = PAYLOADS[0].decode(), PAYLOADS[1].decode()
ERROR = '{"error":{"message":"Upstream connection lost","type":"server_error","code":502}}'
# The whole of a stream of these payloads, after one good event where that makes a difference.
BYTES: dict[StreamForm, str] = {
    "no_space": f"data:{FIRST}\n\ndata:{SECOND}\n\ndata:[DONE]\n\n",
    "crlf": f"data: {FIRST}\r\n\r\ndata: {SECOND}\r\n\r\ndata: [DONE]\r\n\r\n",
    "cr": f"data: {FIRST}\r\rdata: {SECOND}\r\rdata: [DONE]\r\r",
    "crlf_split": f"data: {FIRST}\r\n\r\ndata: {SECOND}\r\n\r\ndata: [DONE]\r\n\r\n",
    "multi_line": 'data: {"a":1,\ndata: "choices":[{"delta":{"content":"x"}}]}\n\n'
    f"data: {SECOND}\n\ndata: [DONE]\n\n",
    "bom": f"\ufeffdata: {FIRST}\n\ndata: {SECOND}\n\ndata: [DONE]\n\n",
    "bare_json": f"{FIRST}\n\n{SECOND}\n\ndata: [DONE]\n\n",
    "bad_json": f"data: {FIRST}\n\ndata: {{oops}}\n\ndata: {SECOND}\n\ndata: [DONE]\n\n",
    "error_object": f"data: {FIRST}\n\ndata: {ERROR}\n\n",
    "error_event": f"data: {FIRST}\n\nevent: error\n"
    'data: {"message":"Upstream connection lost"}\n\n',
    "error_text": f'data: {FIRST}\n\ndata: {{"error":"Upstream connection lost"}}\n\n',
    "cut": f"data: {FIRST}\n\n",
    "cut_in_event": f'data: {FIRST}\n\ndata: {{"b',
    "no_done": f"data: {FIRST}\n\ndata: {SECOND}\n\n",
    "no_last_blank": f"data: {FIRST}\n\ndata: {SECOND}\n\ndata: [DONE]",
    "after_done": f"data: {FIRST}\n\ndata: {SECOND}\n\ndata: [DONE]\n\n"
    'data: {"after":"the end"}\n\n',
    "empty": "",
}


@pytest.mark.parametrize("form", BYTES)
def test_forms_byte_by_byte(form: StreamForm) -> None:
    pieces = list(forms.odd(form, iter(PAYLOADS), 1))
    assert b"".join(pieces).decode() == BYTES[form]


def test_pieces_end_between_cr_and_lf() -> None:
    pieces = list(forms.odd("crlf_split", iter(PAYLOADS), 0))
    assert [piece[-1:] for piece in pieces] == [b"\r"] * 6 + [b"\n"]
    assert [piece[:1] for piece in pieces] == [b"d", b"\n", b"\n", b"\n", b"\n", b"\n", b"\n"]


def test_what_clients_must_ignore() -> None:
    for form in ("comments", "fields", "empty_events"):
        text = b"".join(forms.odd(form, iter(PAYLOADS), 0)).decode()
        lines = [line for line in text.split("\n") if line not in ("data", "data: ")]
        assert [line[6:] for line in lines if line.startswith("data: ")] == [
            payload.decode() for payload in PAYLOADS
        ]
        assert len(lines) > 2 * len(PAYLOADS)


def test_a_token_that_is_no_utf8() -> None:
    data = b"".join(forms.odd("bad_utf8", iter(PAYLOADS), 0))
    assert b'"content":"\xffx"' in data


def test_an_event_of_five_megabytes() -> None:
    pieces = list(forms.odd("huge_event", iter(PAYLOADS), 1))
    assert [len(piece) > 5_000_000 for piece in pieces] == [False, True, False]
    assert json.loads(pieces[1].removeprefix(b"data: "))["b"] == 2


async def test_every_form_reaches_clients(prime_platform: LocalPlatform, client: RawClient) -> None:
    plain = _data(await stream_text(client, max_tokens=2))
    for form in get_args(StreamForm):
        rule = FaultRule(OPERATION, stream_form=form, after_envelopes=2, times=1)
        prime_platform.add_faults(rule)
        async with client.session.post(
            client.url + CHAT, json=asking(stream=True, max_tokens=2), headers=client.key
        ) as response:
            assert response.status == 200
            text = (await response.read()).decode(errors="replace")
        if form.startswith("json"):
            assert response.content_type == "application/json"
            assert ("error" in json.loads(text)) is (form == "json_error")
            continue
        assert response.content_type == "text/event-stream"
        if form in ("no_space", "crlf", "cr", "crlf_split", "comments", "fields", "bom"):
            assert _data(text.replace("data:{", "data: {").replace("data:[", "data: [")) == plain
    assert _data(await stream_text(client, max_tokens=2)) == plain


def _data(text: str) -> list[Any]:
    """Return the data of a stream's events, without what differs between two of them."""
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.startswith("data: ")]
    found = [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]
    return [chunk["choices"] for chunk in found]


async def test_a_scripted_stream_is_sent_as_it_is_written(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    body = '\ufeffdata: {"a":1}\r\n\r\ndata: [DONE]'
    for trickle in (None, 0.0):
        prime_platform.add_faults(
            FaultRule(
                OPERATION,
                times=1,
                status=200,
                headers={"content-type": "text/event-stream; charset=utf-8"},
                body=body,
                trickle=trickle,
            )
        )
        answer = await client.call("POST", CHAT, asking(stream=True))
        assert (answer.status, answer.body.decode()) == (200, body)
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["X-Inference-Id"].startswith("inf_")


async def test_a_refusal_with_the_type_of_a_stream(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    body = '{"error":{"message":"Balance too low","code":"insufficient_funds"}}'
    headers = {"Content-Type": "text/event-stream"}
    prime_platform.add_faults(FaultRule(OPERATION, status=402, headers=headers, body=body))
    answer = await client.call("POST", CHAT, asking(stream=True))
    assert (answer.status, answer.body.decode()) == (402, body)


@pytest.mark.parametrize("fault", [{"reset": "after_commit"}, {"truncate": 9}])
async def test_a_stream_breaks_off_after_some_chunks(
    prime_platform: LocalPlatform, client: RawClient, fault: dict[str, Any]
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, after_envelopes=3, times=1, **fault))
    data = bytearray()
    with pytest.raises(aiohttp.ClientError):
        await _read_into(data, client)
    assert data.count(b"\n\n") == 4  # the comment, and three chunks
    (call,) = prime_platform.inference_calls()
    assert (call["outcome"], call["completion_tokens"]) == ("abandoned", 3)


async def _read_into(data: bytearray, client: RawClient) -> None:
    async with client.session.post(
        client.url + CHAT, json=asking(stream=True), headers=client.key
    ) as response:
        async for piece in response.content.iter_any():
            data += piece


async def test_a_late_first_byte_and_a_pause(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    for rule in (
        FaultRule(OPERATION, times=1, delay_after=0.2),
        FaultRule(OPERATION, times=1, stall=0.2, after_envelopes=2),
    ):
        prime_platform.add_faults(rule)
        begin = time.monotonic()
        await stream_text(client)
        assert 0.2 <= time.monotonic() - begin < 5


async def test_tokens_take_time(prime_platform: LocalPlatform, client: RawClient) -> None:
    prime_platform.set_inference(token_time=0.02)
    times = []
    async with client.session.post(
        client.url + CHAT, json=asking(stream=True, max_tokens=10), headers=client.key
    ) as response:
        async for _ in response.content.iter_any():
            times.append(time.monotonic())
    assert times[-1] - times[0] >= 0.2
    assert len(times) > 5


async def test_a_reader_that_leaves_ends_its_stream(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    body = asking(stream=True, max_tokens=100_000, ignore_eos=True)
    response = await client.session.post(client.url + CHAT, json=body, headers=client.key)
    await response.content.readany()
    assert prime_platform.ledger()["inference"]["open"] == 1
    response.close()
    await _until_closed(prime_platform)
    counts = prime_platform.ledger()["inference"]
    assert (counts["open"], counts["peak"], counts["abandoned"]) == (0, 1, 1)
    (call,) = prime_platform.inference_calls()
    assert call["outcome"] == "abandoned"
    assert 0 < call["completion_tokens"] < 100_000
    assert counts["accounts"]["personal"]["cost_usd"] == pytest.approx(call["cost_usd"])


async def _until_closed(platform: LocalPlatform) -> None:
    deadline = time.monotonic() + 5
    while platform.ledger()["inference"]["open"]:
        assert time.monotonic() < deadline, "the stream is still open"
        await asyncio.sleep(0.01)


async def test_a_pause_ends_with_its_reader(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, times=1, stall=60, after_envelopes=2))
    for token_time in (0, 60):
        prime_platform.set_inference(token_time=token_time)
        response = await client.session.post(
            client.url + CHAT, json=asking(stream=True), headers=client.key
        )
        await response.content.readany()
        response.close()
        await _until_closed(prime_platform)
    assert prime_platform.ledger()["inference"]["abandoned"] == 2


async def test_a_reader_that_never_reads_holds_its_stream_back(
    prime_platform: LocalPlatform, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    make = forms.framed

    def counted(payloads: Any) -> Any:
        nonlocal made
        for piece in make(payloads):
            made += len(piece)
            yield piece

    monkeypatch.setattr("prime_local.inference.chat.framed", counted)
    body = asking(model=ECHO, text="x " * 500_000, stream=True, max_tokens=500_000)
    response = await client.session.post(client.url + CHAT, json=body, headers=client.key)
    before = -1
    while before != made:
        before = made
        await asyncio.sleep(0.3)
    # All of it would be 90 MB: what was made fills the buffers of the sockets, no more.
    assert 0 < made < 15_000_000
    response.close()
    await _until_closed(prime_platform)


async def test_streams_run_side_by_side(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(validate_responses=False)

    async def read(number: int) -> int:
        text = await stream_text(client, f"Number {number}", max_tokens=200, ignore_eos=True)
        assert text.endswith("data: [DONE]\n\n")
        return text.count("data: {")

    counts = await asyncio.gather(*(read(number) for number in range(100)))
    assert set(counts) == {202}  # role, tokens, end
    assert platform.ledger()["inference"]["peak"] > 10


async def test_a_long_stream_does_not_hold_up_others(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    body = asking(model=ECHO, text="x " * 200_000, stream=True, max_tokens=200_000)
    async with client.session.post(client.url + CHAT, json=body, headers=client.key) as response:
        reading = asyncio.create_task(response.read())
        begin = time.monotonic()
        await stream_text(client, max_tokens=5)
        assert not reading.done()
        assert time.monotonic() - begin < 1
        reading.cancel()
