"""What a request looks like on the wire."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import pytest
from raw_server import RawServer, answer
from rows import CREATE, DELETE, KEY, POKE, READ, READ_ONE
from transports import Connect, transport_to
from yarl import URL

from prime_core.calls import Target, new_request_id
from prime_core.config import Config
from prime_core.decoding import read_object
from prime_core.encoding import Query
from prime_core.errors import ConfigurationError, NotFoundError
from prime_core.transport import AsyncTransport, TransportSettings


async def test_a_read_carries_key_agent_and_id_and_no_body(
    server: RawServer, connect: Connect
) -> None:
    await connect(user_agent="prime-x/1.2.3").request(READ)
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("GET", "/api/v1/thing", b"")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["user-agent"] == f"prime-x/1.2.3 python/{platform.python_version()}"
    assert request.headers["accept"] == "application/json"
    assert request.headers["x-request-id"]
    assert not {"content-type", "x-prime-team-id", "cookie"} & set(request.headers)


async def test_a_body_is_sent_as_it_is_with_key_and_team_in_front(
    server: RawServer, connect: Connect
) -> None:
    transport = connect(team_id="team-1")
    await transport.request(CREATE, body=b'{"name":"a"}', key="k1")
    (request,) = server.requests
    assert request.body == b'{"team_id":"team-1","idempotency_key":"k1","name":"a"}'
    assert request.headers["content-type"] == "application/json"
    assert request.headers["content-length"] == str(len(request.body))


@pytest.mark.parametrize(
    ("configured", "asked", "sent"),
    [
        ("team-1", None, "team-1"),
        ("team-1", "team-2", "team-2"),
        ("team-1", "", None),
        ("", None, None),
        ("", "team-2", "team-2"),
        ("", "", None),
    ],
)
async def test_the_team_travels_in_header_query_and_body_alike(
    server: RawServer, connect: Connect, configured: str, asked: str | None, sent: str | None
) -> None:
    transport = connect(team_id=configured)
    await transport.request(READ, team=asked)
    await transport.request(CREATE, body=b"{}", team=asked)
    await transport.request(DELETE, path={"thing_id": "x"}, team=asked)
    read, create, delete = server.requests
    assert [request.headers.get("x-prime-team-id") for request in server.requests] == [sent] * 3
    assert read.target == "/api/v1/thing" + (f"?team_id={sent}" if sent else "")
    assert create.json == ({"team_id": sent} if sent else {})
    assert (delete.target, delete.body) == ("/api/v1/thing/x", b"")


async def test_a_team_in_the_query_is_the_callers_to_replace(
    server: RawServer, connect: Connect
) -> None:
    await connect(team_id="team-1").request(READ, query={"team_id": "team-2", "page": 3})
    assert server.requests[0].target == "/api/v1/thing?team_id=team-2&page=3"


@pytest.mark.parametrize("team", ["a\r\nX-Evil: 1", "a b", "\x00", "tëam"])
async def test_a_team_that_no_header_can_carry_is_refused_before_sending(
    server: RawServer, connect: Connect, team: str
) -> None:
    with pytest.raises(ValueError, match="team"):
        await connect().request(READ, team=team)
    assert server.connections == 0


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ("plain-1_~.", "plain-1_~."),
        ("a/b", "a%2Fb"),
        ("../../user", "..%2F..%2Fuser"),
        ("a b?c#d", "a%20b%3Fc%23d"),
        ("50%", "50%25"),
        ("a%2Fb", "a%252Fb"),
        ("ü", "%C3%BC"),
        ("...", "..."),
        ("{x}", "%7Bx%7D"),
        ("a\r\nb", "a%0D%0Ab"),
    ],
)
async def test_a_path_parameter_stays_one_segment(
    server: RawServer, connect: Connect, value: str, segment: str
) -> None:
    await connect().request(READ_ONE, path={"thing_id": value})
    assert server.requests[0].target == f"/api/v1/thing/{segment}/part"


@pytest.mark.parametrize("value", ["", ".", "..", None, 7])
async def test_a_path_parameter_that_would_change_the_route_is_refused(
    server: RawServer, connect: Connect, value: object
) -> None:
    with pytest.raises(ValueError, match="read_one needs a thing_id"):
        await connect().request(READ_ONE, path={"thing_id": value})  # type: ignore[dict-item]
    assert server.connections == 0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({}, ""),
        ({"a": None}, ""),
        ({"a": 1, "b": "x y&z=ü"}, "?a=1&b=x+y%26z%3D%C3%BC"),
        ({"yes": True, "no": False}, "?yes=true&no=false"),
        ({"labels": ["a", "b/c"]}, "?labels=a&labels=b%2Fc"),
        ({"labels": []}, ""),
        ({"empty": ""}, "?empty="),
    ],
)
async def test_query_parameters_are_written_as_the_platform_reads_them(
    server: RawServer, connect: Connect, query: Query, text: str
) -> None:
    await connect().request(READ, query=query)
    assert server.requests[0].target == f"/api/v1/thing{text}"


async def test_each_call_has_an_id_of_its_own(server: RawServer, connect: Connect) -> None:
    transport = connect()
    for _ in range(20):
        await transport.request(READ)
    assert len({request.headers["x-request-id"] for request in server.requests}) == 20
    assert server.connections == 1
    assert len({new_request_id() for _ in range(10_000)}) == 10_000


async def test_the_servers_request_id_is_the_one_in_the_error(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(404, X_Request_Id="from-server"), answer(404)]
    transport = connect()
    with pytest.raises(NotFoundError) as found:
        await transport.request(READ)
    assert found.value.request_id == "from-server"
    with pytest.raises(NotFoundError) as found:
        await transport.request(READ)
    assert found.value.request_id == server.requests[1].headers["x-request-id"]


async def test_without_a_key_nothing_is_sent(server: RawServer) -> None:
    transport = AsyncTransport(Config(base_url=server.url), TransportSettings())
    with pytest.raises(ConfigurationError, match="PRIME_API_KEY"):
        await transport.request(READ)
    assert server.connections == 0


async def test_without_a_key_that_is_not_required_no_authorization_is_sent(
    server: RawServer,
) -> None:
    transport = AsyncTransport(Config(base_url=server.url), TransportSettings(require_auth=False))
    await transport.request(READ)
    await transport.aclose()
    assert "authorization" not in server.requests[0].headers


async def test_another_host_sees_neither_key_nor_team(server: RawServer, connect: Connect) -> None:
    transport = connect("http://127.0.0.1:9", team_id="team-1")
    target = Target.of(server.url, {"Authorization": "Bearer token"})
    call = transport.prepare_elsewhere(
        POKE, read_object, target, path={}, headers={"X-Own": "1"}, body=b"\x00\xff", timeout=5.0
    )
    await transport.perform(call)
    (request,) = server.requests
    assert request.body == b"\x00\xff"
    assert request.headers["authorization"] == "Bearer token"
    assert request.headers["x-own"] == "1"
    assert KEY not in request.raw_headers
    assert "team-1" not in request.raw_headers


async def test_a_base_url_keeps_its_path(server: RawServer, connect: Connect) -> None:
    await connect(f"{server.url}/proxied/api/v1/").request(READ)
    assert server.requests[0].target == "/proxied/api/v1/thing"


@pytest.mark.parametrize(
    "values",
    [
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"timeout": "60"},
        {"queue_timeout": 0},
        {"max_throttle_wait": -1},
        {"max_connections": 0},
    ],
)
def test_settings_out_of_range_are_refused(values: Mapping[str, object]) -> None:
    (name,) = values
    with pytest.raises(ValueError, match=name):
        TransportSettings(**values)  # type: ignore[arg-type]


def test_a_static_route_is_encoded_once(server: RawServer) -> None:
    transport = transport_to(server.url)
    first, second = (transport.prepare(READ, read_object) for _ in range(2))
    assert first.url is second.url
    assert first.url == URL(f"{server.url}/api/v1/thing")
