from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable
from itertools import accumulate, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pieces import pieces_of

from prime_core.connect import (
    MAX_MESSAGE_BYTES,
    ConnectCode,
    ConnectFault,
    ConnectProtocolError,
    EndStream,
    Envelope,
    EnvelopeDecoder,
    encode_envelope,
    parse_error_body,
    stream_headers,
    unary_headers,
)

HEADER_SIZE = 5
END = b"\x02\x00\x00\x00\x02{}"


def frame(flags: int, payload: bytes) -> bytes:
    return struct.pack(">BI", flags, len(payload)) + payload


def decode(
    chunks: Iterable[bytes], max_message_bytes: int = MAX_MESSAGE_BYTES
) -> tuple[list[Envelope], EnvelopeDecoder]:
    decoder = EnvelopeDecoder(max_message_bytes)
    envelopes = [envelope for chunk in chunks for envelope in decoder.feed(chunk)]
    return envelopes, decoder


def framed(message: bytes, compressed: bool) -> tuple[bytes, bytes]:
    return message, frame(1, gzip.compress(message)) if compressed else encode_envelope(message)


# Messages, each with its frame.
FRAMED = st.lists(st.builds(framed, st.binary(max_size=300), st.booleans()), max_size=8)


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[list[bytes], bool, list[bytes]]:
    """Messages, whether an end envelope follows them, and the stream's bytes in pieces."""
    messages = draw(FRAMED)
    ended = draw(st.booleans())
    stream = b"".join(sent for _, sent in messages) + (END if ended else b"")
    return [message for message, _ in messages], ended, draw(pieces_of(stream))


@given(cut_streams())
def test_messages_come_back_however_the_stream_is_cut(
    case: tuple[list[bytes], bool, list[bytes]],
) -> None:
    messages, ended, pieces = case
    envelopes, decoder = decode(pieces)
    assert envelopes == [*messages, *([EndStream()] if ended else [])]
    assert decoder.ended is ended
    decoder.finish()


@given(FRAMED, st.data())
def test_a_stream_that_stops_anywhere_gives_what_was_whole(
    messages: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(sent for _, sent in messages)
    length = data.draw(st.integers(0, len(stream)))
    ends = list(accumulate(len(sent) for _, sent in messages))
    envelopes, decoder = decode(data.draw(pieces_of(stream[:length])))
    whole = sum(end <= length for end in ends)
    assert envelopes == [message for message, _ in messages[:whole]]
    if length in (0, *ends):
        decoder.finish()
    else:
        with pytest.raises(ConnectProtocolError, match="stopped inside"):
            decoder.finish()


@given(FRAMED, st.integers(0, 300), st.data())
def test_a_message_beyond_the_limit_is_refused_after_those_before_it(
    messages: list[tuple[bytes, bytes]], limit: int, data: st.DataObject
) -> None:
    decoder = EnvelopeDecoder(limit)
    expected = list(
        takewhile(lambda each: max(len(each[0]), len(each[1]) - HEADER_SIZE) <= limit, messages)
    )
    envelopes: list[Envelope] = []
    refused = False
    try:
        for piece in data.draw(pieces_of(b"".join(sent for _, sent in messages))):
            for envelope in decoder.feed(piece):
                envelopes.append(envelope)
    except ConnectProtocolError:
        refused = True
    assert envelopes == [message for message, _ in expected]
    assert refused is (len(expected) < len(messages))


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 64))
def test_garbage_raises_the_typed_error_or_nothing(chunks: list[bytes], limit: int) -> None:
    try:
        envelopes, decoder = decode(chunks, limit)
        decoder.finish()
    except ConnectProtocolError:
        return
    assert all(isinstance(e, EndStream) or len(e) <= limit for e in envelopes)


@given(st.sampled_from([1, 2, 3]), st.binary(max_size=60) | st.text(max_size=30).map(str.encode))
def test_a_damaged_payload_raises_the_typed_error_or_nothing(flags: int, payload: bytes) -> None:
    try:
        envelopes, decoder = decode([frame(flags, payload)])
    except ConnectProtocolError:
        return
    assert len(envelopes) == 1
    assert decoder.ended is isinstance(envelopes[0], EndStream)


def test_sound_envelopes_are_returned_before_a_broken_one_raises() -> None:
    decoder = EnvelopeDecoder()
    envelopes = decoder.feed(encode_envelope(b"good") + b"\x80rubbish")
    assert next(envelopes) == b"good"
    with pytest.raises(ConnectProtocolError, match="0x80"):
        next(envelopes)


def test_envelopes_left_in_the_iterator_are_returned_by_the_next_call() -> None:
    decoder = EnvelopeDecoder()
    first = decoder.feed(encode_envelope(b"a") + encode_envelope(b"b"))
    assert next(first) == b"a"
    assert list(decoder.feed(encode_envelope(b"c"))) == [b"b", b"c"]


def test_a_web_page_is_refused_at_its_first_byte() -> None:
    with pytest.raises(ConnectProtocolError, match="0x3c"):
        decode([b"<"])


def test_an_oversized_message_is_refused_by_its_header() -> None:
    assert decode([frame(0, b"x" * 8)], 8)[0] == [b"x" * 8]
    with pytest.raises(ConnectProtocolError, match="limit of 8 bytes"):
        decode([frame(0, b"x" * 9)[:5]], 8)


def test_a_gzip_bomb_is_refused_without_being_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    limit = len(bomb) + 1
    tracemalloc.start()
    try:
        with pytest.raises(ConnectProtocolError, match="exceeds the limit"):
            decode([frame(1, bomb)], limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_compressed_message_of_exactly_the_limit_is_accepted() -> None:
    assert decode([frame(1, gzip.compress(b"x" * 500))], 500)[0] == [b"x" * 500]
    with pytest.raises(ConnectProtocolError):
        decode([frame(1, gzip.compress(b"x" * 501))], 500)


@pytest.mark.parametrize(
    "payload",
    [b"not gzip", gzip.compress(b"abc")[:-1], gzip.compress(b"a") + gzip.compress(b"b")],
    ids=["not gzip", "truncated", "two members"],
)
def test_invalid_gzip_is_refused(payload: bytes) -> None:
    with pytest.raises(ConnectProtocolError, match="gzip"):
        decode([frame(1, payload)])


def test_an_empty_payload_flagged_as_compressed_is_an_empty_message() -> None:
    assert decode([frame(1, b"")])[0] == [b""]


def test_data_after_the_end_is_refused() -> None:
    with pytest.raises(ConnectProtocolError, match="after the end"):
        decode([END, b"\x00"])


@pytest.mark.parametrize("length", range(1, 9))
def test_a_stream_that_stops_inside_an_envelope_is_noticed(length: int) -> None:
    envelopes, decoder = decode([encode_envelope(b"abcd")[:length]])
    assert envelopes == []
    with pytest.raises(ConnectProtocolError, match=f"{length} bytes left"):
        decoder.finish()


def test_a_stream_without_an_end_envelope_finishes_but_has_not_ended() -> None:
    envelopes, decoder = decode([encode_envelope(b"abcd")])
    decoder.finish()
    assert envelopes == [b"abcd"]
    assert not decoder.ended


def test_large_streams_are_decoded_in_linear_time() -> None:
    def seconds(chunk: int) -> float:
        stream = encode_envelope(b"x" * 8_000_000)
        started = time.process_time()
        envelopes, _ = decode(stream[at : at + chunk] for at in range(0, len(stream), chunk))
        assert len(envelopes) == 1
        return time.process_time() - started

    # One copy of the buffer per chunk would move 60 GB.
    assert seconds(1_000) < 2


def test_many_messages_in_one_chunk_are_decoded_in_linear_time() -> None:
    stream = encode_envelope(b"x" * 20) * 100_000
    started = time.process_time()
    envelopes, _ = decode([stream])
    assert len(envelopes) == 100_000
    # One copy of the rest per message would move 125 GB.
    assert time.process_time() - started < 3


def test_an_end_envelope_carries_error_and_trailers() -> None:
    payload = {
        "error": {"code": "not_found", "message": "gone", "details": [{"type": "t", "value": ""}]},
        "metadata": {"x-trace": ["1", "2"], "odd": "no list", "mixed": ["a", 1]},
    }
    envelopes, decoder = decode([frame(2, json.dumps(payload).encode())])
    assert envelopes == [
        EndStream(
            error=ConnectFault(ConnectCode.NOT_FOUND, "gone"),
            metadata={"x-trace": ("1", "2"), "mixed": ("a",)},
        )
    ]
    assert decoder.ended


def test_an_end_envelope_may_be_compressed() -> None:
    assert decode([frame(3, gzip.compress(b'{"error": null}'))])[0] == [EndStream()]


def test_an_error_code_that_is_not_known_reads_as_unknown() -> None:
    (end,), _ = decode([frame(2, b'{"error":{"code":"brand_new","message":"m"}}')])
    assert end == EndStream(ConnectFault(ConnectCode.UNKNOWN, "m"))


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"null", b"{", b'{"error":"text"}', b"\xff", b"[" * 200_000],
    ids=["empty", "list", "null", "cut off", "error is text", "not UTF-8", "deeply nested"],
)
def test_an_end_envelope_without_a_json_object_is_refused(payload: bytes) -> None:
    with pytest.raises(ConnectProtocolError, match="end-of-stream"):
        decode([frame(2, payload)])


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "internal"),
        (401, "unauthenticated"),
        (403, "permission_denied"),
        (404, "unimplemented"),
        (429, "unavailable"),
        (502, "unavailable"),
        (503, "unavailable"),
        (504, "unavailable"),
        (409, "unknown"),
        (500, "unknown"),
        (418, "unknown"),
    ],
)
def test_a_status_stands_for_the_code_that_the_body_lacks(status: int, code: str) -> None:
    assert ConnectCode.from_http_status(status) == code
    assert parse_error_body(status, b"").code == code


def test_there_are_sixteen_codes_that_print_as_their_word() -> None:
    assert len(ConnectCode) == 16
    assert f"{ConnectCode.DEADLINE_EXCEEDED}" == "deadline_exceeded"


def test_the_code_of_the_body_wins_over_the_status() -> None:
    body = b'{"code":"not_found","message":"session not found"}'
    assert parse_error_body(404, body) == ConnectFault(ConnectCode.NOT_FOUND, "session not found")


def test_a_gateway_error_keeps_its_own_word() -> None:
    body = b'{"error":"sandbox_not_found","sandboxId":"s","message":"no such sandbox","code":502}'
    fault = parse_error_body(502, body)
    assert fault == ConnectFault(ConnectCode.UNAVAILABLE, "no such sandbox", "sandbox_not_found")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "HTTP 503"),
        (b"  \n", "HTTP 503"),
        (b"<html>busy</html>", "<html>busy</html>"),
        (b'{"message": 7}', '{"message": 7}'),
        (b'{"error": "gateway_error"}', "gateway_error"),
        (b"[1]", "[1]"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_a_body_without_a_message_is_quoted(body: bytes, message: str) -> None:
    fault = parse_error_body(503, body)
    assert (fault.code, fault.message) == (ConnectCode.UNAVAILABLE, message)


def test_a_huge_error_body_is_cut_without_being_parsed() -> None:
    fault = parse_error_body(500, b'{"message":"' + b"x" * 10_000_000 + b'"}')
    assert fault.message == '{"message":"' + "x" * 988


def test_a_long_message_is_cut() -> None:
    fault = parse_error_body(500, b'{"message":"' + b"x" * 5_000 + b'"}')
    assert fault.message == "x" * 1_000


@given(st.integers(100, 599), st.binary(max_size=200))
def test_any_error_body_gives_a_fault(status: int, body: bytes) -> None:
    assert parse_error_body(status, body).message


def test_request_headers_are_those_of_the_protocol() -> None:
    assert stream_headers(1_500) == {
        "Content-Type": "application/connect+proto",
        "Connect-Protocol-Version": "1",
        "Connect-Timeout-Ms": "1500",
        "Connect-Content-Encoding": "identity",
        "Connect-Accept-Encoding": "gzip,identity",
        "Accept-Encoding": "identity",
    }
    assert unary_headers(None) == {
        "Content-Type": "application/proto",
        "Connect-Protocol-Version": "1",
        "Content-Encoding": "identity",
        "Accept-Encoding": "gzip,identity",
    }


@pytest.mark.parametrize("timeout_ms", [0, -1, 10_000_000_000])
def test_a_deadline_of_no_use_is_refused(timeout_ms: int) -> None:
    with pytest.raises(ValueError, match="timeout_ms"):
        stream_headers(timeout_ms)
    with pytest.raises(ValueError, match="timeout_ms"):
        unary_headers(timeout_ms)


def test_the_framing_needs_nothing_but_the_standard_library() -> None:
    script = (
        "import sys, prime_core.connect;"
        "print(sorted({'aiohttp', 'google.protobuf', 'pydantic', 'tenacity'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30)
    assert (done.stdout.decode().strip(), done.stderr) == ("[]", b"")
