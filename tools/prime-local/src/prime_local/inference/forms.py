"""The odd forms that a stream of events may have, which fault rules ask for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import msgspec

from prime_local.faults import StreamForm
from prime_local.inference.events import DONE

_HUGE_BYTES = 5 * 1024 * 1024
ERROR = b'{"error":{"message":"Upstream connection lost","type":"server_error","code":502}}'

# From the payloads of events, and how many of them pass unspoiled, to the pieces to send.
_Form = Callable[[Iterator[bytes], int], Iterator[bytes]]


def framed(payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Yield events in the plain form, which every client reads."""
    return (b"data: " + payload + b"\n\n" for payload in payloads)


def odd(form: StreamForm, payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    """Yield a stream in an odd form, piece by piece.

    Args:
        form: the name of the form.
        payloads: the data of the events, `[DONE]` included.
        good: how many events pass before a stream is cut or spoiled.
    """
    return _FORMS[form](payloads, good)


def _like(before: bytes, after: bytes) -> _Form:
    return lambda payloads, good: (before + payload + after for payload in payloads)


def _crlf_split(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    """End each piece between a CR and its LF."""
    rest = b""
    for payload in payloads:
        yield rest + b"data: " + payload + b"\r"
        yield b"\n\r"
        rest = b"\n"
    yield rest


def _multi_line(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    for payload in payloads:
        head, comma, rest = payload.partition(b",")
        second = b"data: " + rest + b"\n" if comma else b""
        yield b"data: " + head + comma + b"\n" + second + b"\n"


def _bom(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    return itertools.chain([b"\xef\xbb\xbf"], framed(payloads))


def _bare_json(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    for payload in payloads:
        yield (b"data: " if payload == DONE else b"") + payload + b"\n\n"


def _bad_utf8(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    start = b'"content":"'
    return framed(payload.replace(start, start + b"\xff") for payload in payloads)


def _usage_in_choices(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    for payload in payloads:
        if b'"choices":[]' in payload:
            totals = msgspec.json.decode(payload)
            totals["choices"] = [{"index": 0, "delta": {}, "usage": totals.pop("usage")}]
            payload = msgspec.json.encode(totals)
        yield from framed([payload])


def _huge_event(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    yield from framed(itertools.islice(payloads, good))
    for payload in itertools.islice(payloads, 1):
        yield from framed([payload[:-1] + b',"obfuscation":"' + b"x" * _HUGE_BYTES + b'"}'])
    yield from framed(payloads)


def _ended_by(*last: bytes) -> _Form:
    """Some good events, and then something else instead of the rest."""
    return lambda payloads, good: itertools.chain(
        framed(itertools.islice(payloads, good)), iter(last)
    )


def _bad_json(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    yield from framed(itertools.islice(payloads, good))
    yield b"data: {oops}\n\n"
    yield from framed(payloads)


def _cut_in_event(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    yield from framed(itertools.islice(payloads, good))
    yield from (
        b"data: " + payload[: len(payload) // 2] for payload in itertools.islice(payloads, 1)
    )


def _no_done(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    return framed(payload for payload in payloads if payload != DONE)


def _no_last_blank(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    return (b"data: " + payload + (b"" if payload == DONE else b"\n\n") for payload in payloads)


def _after_done(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    return itertools.chain(framed(payloads), [b'data: {"after":"the end"}\n\n'])


def _empty(payloads: Iterator[bytes], good: int) -> Iterator[bytes]:
    return iter(())


_FORMS: dict[StreamForm, _Form] = {
    "no_space": _like(b"data:", b"\n\n"),
    "crlf": _like(b"data: ", b"\r\n\r\n"),
    "cr": _like(b"data: ", b"\r\r"),
    "crlf_split": _crlf_split,
    "comments": _like(b": ping\n\n:\n\ndata: ", b"\n: inside\n\n"),
    "multi_line": _multi_line,
    "bom": _bom,
    "fields": _like(b"event: x\nid: 7\nretry: 10\nother: 1\ndata: ", b"\n\n"),
    "empty_events": _like(b"data\n\ndata: \n\nevent: x\n\ndata: ", b"\n\n"),
    "bare_json": _bare_json,
    "bad_utf8": _bad_utf8,
    "usage_in_choices": _usage_in_choices,
    "huge_event": _huge_event,
    "bad_json": _bad_json,
    "error_object": _ended_by(b"data: " + ERROR + b"\n\n"),
    "error_event": _ended_by(b'event: error\ndata: {"message":"Upstream connection lost"}\n\n'),
    "error_text": _ended_by(b'data: {"error":"Upstream connection lost"}\n\n'),
    "cut": _ended_by(),
    "cut_in_event": _cut_in_event,
    "no_done": _no_done,
    "no_last_blank": _no_last_blank,
    "after_done": _after_done,
    "empty": _empty,
}
