"""Redirects: followed where they are harmless, and never with the key to a stranger."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from raw_server import RawServer, Step, after, answer
from rows import CREATE, KEY, POKE, READ
from transports import Connect

from prime_core.errors import APIError, APIResponseError, APITimeoutError
from prime_core.operations import Operation


@pytest.fixture
def other() -> Iterator[RawServer]:
    with RawServer(answer(200, {"from": "other"})) as other:
        yield other


def redirect(status: int, location: str) -> Step:
    return answer(status, b"", Location=location)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_read_follows_to_the_same_origin_with_all_its_headers(
    server: RawServer, connect: Connect, status: int
) -> None:
    server.steps = [redirect(status, "/api/v1/thing/?x=1"), answer(200, {"id": "t1"})]
    assert await connect(team_id="team-1").request(READ) == {"id": "t1"}
    first, second = server.requests
    assert second.target == "/api/v1/thing/?x=1"
    assert second.headers == first.headers


@pytest.mark.parametrize("status", [307, 308])
async def test_a_write_follows_with_method_and_body_where_the_status_keeps_them(
    server: RawServer, connect: Connect, status: int
) -> None:
    server.steps = [redirect(status, f"{server.url}/moved"), answer(200, {"id": "t1"})]
    await connect().request(CREATE, body=b'{"name":"a"}', key="k1")
    first, second = server.requests
    assert (second.method, second.target) == ("POST", "/moved")
    assert second.body == first.body
    assert second.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_write_is_not_turned_into_a_read(
    server: RawServer, connect: Connect, status: int
) -> None:
    server.steps = [redirect(status, "/moved"), answer()]
    with pytest.raises(APIResponseError, match=f"HTTP {status}.*base URL") as caught:
        await connect().request(CREATE, body=b"{}", key="k1")
    assert caught.value.status_code == status
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [302, 307])
async def test_another_host_gets_a_read_without_key_team_and_id(
    server: RawServer, connect: Connect, other: RawServer, status: int
) -> None:
    server.steps = [redirect(status, f"{other.url}/elsewhere")]
    assert await connect(team_id="team-1").request(READ) == {"from": "other"}
    (request,) = other.requests
    assert request.target == "/elsewhere"
    assert KEY not in request.raw_headers
    assert not {"authorization", "x-prime-team-id"} & set(request.headers)


async def test_the_key_does_not_come_back_on_the_way_home(
    server: RawServer, connect: Connect, other: RawServer
) -> None:
    server.steps = [redirect(302, f"{other.url}/away"), answer(200, {"id": "t1"})]
    other.steps = [redirect(302, f"{server.url}/home")]
    assert await connect().request(READ) == {"id": "t1"}
    assert "authorization" not in server.requests[1].headers


@pytest.mark.parametrize("operation", [CREATE, POKE])
async def test_another_host_never_gets_a_write(
    server: RawServer, connect: Connect, other: RawServer, operation: Operation
) -> None:
    server.steps = [redirect(307, f"{other.url}/elsewhere")]
    with pytest.raises(APIResponseError, match="must not go"):
        await connect().request(operation, body=b'{"secret":"s"}')
    assert other.connections == 0
    assert len(server.requests) == 1


async def test_a_location_with_a_password_is_followed_without_it(
    server: RawServer, connect: Connect
) -> None:
    location = f"http://user:word@127.0.0.1:{server.port}/moved"
    server.steps = [redirect(302, location), answer(200, {"id": "t1"})]
    assert await connect().request(READ) == {"id": "t1"}
    assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("moved", "/api/v1/moved"),
        ("?page=2", "/api/v1/thing?page=2"),
        ("/a b", "/a%20b"),
        ("/a%2Fb?x=%20%2B", "/a%2Fb?x=%20%2B"),
    ],
)
async def test_a_relative_location_is_joined(
    server: RawServer, connect: Connect, location: str, target: str
) -> None:
    server.steps = [redirect(302, location), answer()]
    await connect().request(READ)
    assert server.requests[1].target == target


@pytest.mark.parametrize(
    "location",
    [
        "http://[::1",
        "http://127.0.0.1:99999/",
        "mailto:somebody@example.org",
        "ftp://127.0.0.1/thing",
        "javascript:alert(1)",
    ],
)
async def test_a_location_that_is_no_address_is_a_typed_error(
    server: RawServer, connect: Connect, location: str
) -> None:
    server.steps = [redirect(302, location)]
    with pytest.raises(APIError) as caught:
        await connect().request(READ)
    assert len(server.requests) == 1
    assert caught.value.status_code == 302


@pytest.mark.parametrize("location", ["\xff\xfe:/", "/\xff", "http://a b/", "/a\tb\x01"])
async def test_a_location_of_odd_characters_is_a_typed_error_or_an_odd_path(
    server: RawServer, connect: Connect, location: str
) -> None:
    server.steps = [redirect(302, location), answer(404)]
    with pytest.raises(APIError):
        await connect().request(READ, timeout=5.0)


async def test_a_circle_ends(server: RawServer, connect: Connect) -> None:
    server.steps = [redirect(302, "/again")]
    with pytest.raises(APIResponseError, match="circle") as caught:
        await connect().request(READ)
    assert len(server.requests) == 6
    assert caught.value.attempts == 1


async def test_a_redirect_without_a_location_is_an_error(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(302), answer(304)]
    transport = connect()
    for status in (302, 304):
        with pytest.raises(APIError, match=f"HTTP {status}"):
            await transport.request(READ)


async def test_slow_redirects_share_the_calls_time(server: RawServer, connect: Connect) -> None:
    server.steps = [after(0.15, redirect(302, "/again"))]
    started = time.monotonic()
    with pytest.raises(APITimeoutError):
        await connect().request(READ, timeout=0.4)
    assert time.monotonic() - started < 0.8
