"""The API key shows nowhere: not in errors, their tracebacks, logs, reprs or pickles."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from collections.abc import Iterator

import pytest
from raw_server import RawServer, Step, answer, closed_port, raw, reset, silence
from rows import CREATE, KEY, POKE, Thing
from showing import shown
from transports import Connect

from prime_core import errors
from prime_core._async.api_client import AsyncAPIClient
from prime_core.calls import Body, Target
from prime_core.config import Config
from prime_core.decoding import read_object
from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    ConfigurationError,
    PrimeError,
    QuotaExceededError,
    ValidationError,
)
from prime_core.sync import run

pytestmark = pytest.mark.usefixtures("quick_retries")

ANSWERED = "a-token-in-an-answer"
FAILURES: dict[str, Step] = {
    "401": answer(401, {"detail": "Invalid key"}),
    "422": answer(422, {"detail": [{"loc": ["body", "x"], "msg": "bad"}]}),
    "429": answer(429, {"detail": "slow"}, Retry_After="9999"),
    "500": answer(500, b"<html>oops</html>"),
    "reset": reset(),
    "silence": silence(),
    "truncated": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
    "garbage": raw(b"garbage\r\n\r\n"),
    "not JSON": answer(200, b"nonsense"),
    "other shape": answer(200, {"id": {"token": ANSWERED}}),
    "redirect": answer(307, b"", Location="http://127.0.0.2:1/"),
}


@pytest.mark.parametrize("task", [asyncio.Task, asyncio.tasks._PyTask])  # type: ignore[attr-defined]
@pytest.mark.parametrize("failure", FAILURES)
async def test_no_error_shows_the_key(
    server: RawServer,
    connect: Connect,
    failure: str,
    task: type[asyncio.Task[object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    server.steps = [FAILURES[failure]]
    call = connect().request(CREATE, Thing, body=b"{}", timeout=0.5)
    with pytest.raises(APIError) as caught:
        await task(call, loop=loop)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    texts = [*shown(caught.value, __file__), caplog.text]
    assert len(texts) > 10
    assert not [text for text in texts if KEY in text or ANSWERED in text]
    assert KEY.encode() not in pickle.dumps(caught.value)


async def test_no_error_of_a_connection_shows_the_key(connect: Connect) -> None:
    for base_url in (f"http://127.0.0.1:{closed_port()}", f"https://127.0.0.1:{closed_port()}"):
        with pytest.raises(APIConnectionError) as caught:
            await connect(base_url).request(POKE)
        assert not [text for text in shown(caught.value, __file__) if KEY in text]


async def test_an_error_of_ours_does_not_show_the_key(server: RawServer, connect: Connect) -> None:
    async def broken(status: int, body: Body) -> object:
        raise LookupError("a fault in a reader")

    transport = connect()
    with pytest.raises(LookupError) as caught:
        await transport.perform(transport.prepare(POKE, broken))
    assert not [text for text in shown(caught.value, __file__) if KEY in text]


async def test_a_call_does_not_show_what_it_carries(server: RawServer, connect: Connect) -> None:
    transport = connect()
    call = transport.prepare(CREATE, read_object, body=b'{"secret": "s3cr3t"}')
    target = Target.of(server.url, {"Authorization": "Bearer s3cr3t"})
    for thing in (call, call.headers, transport, transport.config, transport.settings, target):
        assert KEY not in repr(thing)
        assert "s3cr3t" not in repr(thing)
    assert "Authorization" in repr(call.headers)


def test_a_sync_call_does_not_show_the_key(server: RawServer) -> None:
    server.steps = [answer(401)]
    client = AsyncAPIClient(config=Config(KEY, base_url=server.url))
    with pytest.raises(APIError) as caught:
        run(client.get("/thing"))
    assert not [text for text in shown(caught.value, __file__) if KEY in text]
    run(client.aclose())


async def test_a_call_is_logged_in_one_line_without_values(
    server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "prime_core")
    server.steps = [answer(200), answer(404)]
    transport = connect()
    await transport.request(POKE, body=b'{"secret": "s3cr3t"}')
    with pytest.raises(APIError):
        await transport.request(POKE)
    first, second = [record.getMessage() for record in caplog.records]
    assert first.startswith("POST /api/v1/poke -> ok in ")
    assert server.requests[0].headers["x-request-id"] in first
    assert second.startswith("POST /api/v1/poke -> 404 in ")
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def every_error() -> Iterator[PrimeError]:
    for name in errors.__all__:
        kind = getattr(errors, name)
        yield kind("what happened")
    error = ValidationError("bad", problems=[("a", "b")], status_code=422, code="c", body="{}")
    error.attempts, error.elapsed, error.host, error.operation = 3, 1.5, "h", "create_thing"
    yield error
    yield APITimeoutError("late", sent="no", phase="pool")
    yield APIConnectionError("gone", sent="yes")
    quota = QuotaExceededError("full", status_code=429, request_id="r", retry_after=None)
    yield quota
    yield ConfigurationError("no key")


@pytest.mark.parametrize("error", [*every_error()], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_pickles_and_copies_whole(error: PrimeError, protocol: int) -> None:
    for twin in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert type(twin) is type(error)
        assert (twin.args, vars(twin), str(twin)) == (error.args, vars(error), str(error))


async def test_a_raised_error_pickles_whole(server: RawServer, connect: Connect) -> None:
    server.steps = [raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")]
    with pytest.raises(APIResponseError) as caught:
        await connect().request(POKE)
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (str(twin), vars(twin)) == (str(caught.value), vars(caught.value))
    assert "ClientPayloadError" in str(caught.value.__cause__)


def test_a_client_pickles_without_a_key_that_came_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRIME_API_KEY", KEY)
    client = AsyncAPIClient(user_agent="mine/1", timeout=7.0, max_connections=3)
    data = pickle.dumps(client)
    assert KEY.encode() not in data
    monkeypatch.setenv("PRIME_API_KEY", "pit_other")
    twin = pickle.loads(data)
    assert twin.api_key == "pit_other"
    assert vars(twin._transport.settings) == vars(client._transport.settings)


def test_a_client_pickles_with_its_key_on_request_only() -> None:
    assert KEY.encode() not in pickle.dumps(AsyncAPIClient(KEY))
    client = AsyncAPIClient(config=Config(KEY, portable=True))
    assert pickle.loads(pickle.dumps(client)).api_key == KEY
