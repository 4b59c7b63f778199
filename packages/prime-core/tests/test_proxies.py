"""Proxies that the environment names."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Iterator

import pytest
from certificates import Authority, make_authority
from raw_server import RawServer, Received, Wire, answer, closed_port, raw
from rows import KEY, POKE, READ
from transports import Connect

from prime_core.errors import APIConnectionError, APIError, ConfigurationError
from prime_core.sessions import proxy_for

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[RawServer]:
    """A server that every call is sent through."""
    with RawServer(answer(200, {"from": "proxy"})) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        yield proxy


async def tunnel(wire: Wire, request: Received) -> None:
    """What a proxy does with CONNECT."""
    host, _, port = request.target.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        sink.close()

    await wire.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await asyncio.gather(pump(wire.reader, writer), pump(reader, wire.writer))
    wire.close()


async def test_a_plain_call_goes_through_the_proxy_with_its_whole_address(
    proxy: RawServer, connect: Connect
) -> None:
    transport = connect("http://api.invalid:8080")
    assert await transport.request(READ, query={"page": 1}) == {"from": "proxy"}
    (request,) = proxy.requests
    assert request.target == "http://api.invalid:8080/api/v1/thing?page=1"
    assert request.headers["host"] == "api.invalid:8080"
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_a_tls_call_goes_through_a_tunnel_that_does_not_see_the_key(
    proxy: RawServer, connect: Connect, authority: Authority
) -> None:
    proxy.steps = [tunnel]
    with RawServer(answer(200, {"from": "origin"}), tls=authority.server) as origin:
        transport = connect(origin.url, ssl_context=authority.client)
        assert await transport.request(READ) == {"from": "origin"}
        assert await transport.request(READ) == {"from": "origin"}
        await transport.aclose()
        assert origin.requests[0].headers["authorization"] == f"Bearer {KEY}"
    (request,) = proxy.requests
    assert (request.method, request.target) == ("CONNECT", f"127.0.0.1:{origin.port}")
    assert KEY not in request.raw_headers


@pytest.mark.parametrize("exempt", ["127.0.0.1", "*", "example.org, 127.0.0.1"])
async def test_an_exempt_host_is_called_directly(
    server: RawServer,
    proxy: RawServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    exempt: str,
) -> None:
    monkeypatch.setenv("NO_PROXY", exempt)
    await connect().request(READ)
    assert proxy.connections == 0
    assert server.requests[0].target == "/api/v1/thing"


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "http://h/", None),
        ({"http_proxy": "http://p:1"}, "http://h/", "http://p:1"),
        ({"http_proxy": "p:1"}, "http://h/", "http://p:1"),
        ({"http_proxy": "http://p:1"}, "https://h/", None),
        ({"HTTPS_PROXY": "https://p:1"}, "https://h/", "https://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "https://h/", "http://p:1"),
        ({"http_proxy": "http://p:1", "no_proxy": "h"}, "http://h/", None),
        ({"http_proxy": "http://p:1", "no_proxy": ".ex.org"}, "http://a.ex.org/", None),
        ({"http_proxy": "http://p:1", "no_proxy": "h:8"}, "http://h:8/", None),
        ({"http_proxy": "http://p:1", "no_proxy": "h:8"}, "http://h:9/", "http://p:1"),
        ({"http_proxy": "http://p:1", "no_proxy": "other"}, "http://h/", "http://p:1"),
        ({"http_proxy": ""}, "http://h/", None),
    ],
)
def test_the_environment_chooses_the_proxy(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy


def test_a_proxy_that_is_not_http_is_refused_when_the_client_is_made(
    server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://user:p4ssw0rd@127.0.0.1:1080")
    with pytest.raises(ConfigurationError, match=r"socks5.*NO_PROXY") as caught:
        connect()
    assert "p4ssw0rd" not in str(caught.value)


async def test_a_proxys_password_reaches_the_proxy_alone(
    proxy: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//user:p4ssw0rd@"))
    await connect("http://api.invalid").request(READ)
    expected = base64.b64encode(b"user:p4ssw0rd").decode()
    assert proxy.requests[0].headers["proxy-authorization"] == f"Basic {expected}"
    assert proxy.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("base_url", ["http://api.invalid", "https://api.invalid"])
async def test_a_proxy_that_cannot_be_reached_was_surely_not_passed(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, base_url: str
) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, f"http://user:p4ssw0rd@127.0.0.1:{closed_port()}")
    with pytest.raises(APIConnectionError) as caught:
        await connect(base_url).request(POKE)
    assert (caught.value.sent, caught.value.attempts) == ("no", 3)
    assert "p4ssw0rd" not in f"{caught.value!s} {caught.value.__cause__}"


@pytest.mark.parametrize("status", [403, 407, 502])
async def test_a_tunnel_that_is_refused_was_surely_not_passed(
    proxy: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//user:p4ssw0rd@"))
    proxy.steps = [raw(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())]
    with pytest.raises(APIConnectionError, match="proxy") as caught:
        await connect("https://api.invalid").request(POKE)
    error = caught.value
    assert error.sent == "no"
    assert str(status) in str(error)
    assert "p4ssw0rd" not in f"{error} {error.__cause__}"
    assert KEY not in "".join(request.raw_headers for request in proxy.requests)


async def test_an_answer_of_the_proxy_itself_is_an_error_like_any_other(
    proxy: RawServer, connect: Connect
) -> None:
    proxy.steps = [answer(407, b"<html>Log in to the proxy</html>")]
    with pytest.raises(APIError, match="HTTP 407: Log in to the proxy"):
        await connect("http://api.invalid").request(POKE)


async def test_a_redirect_asks_the_environment_again(
    server: RawServer, proxy: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server.steps = [answer(302, b"", Location="http://elsewhere.invalid/x")]
    assert await connect().request(READ) == {"from": "proxy"}
    assert proxy.requests[0].target == "http://elsewhere.invalid/x"
    assert KEY not in proxy.requests[0].raw_headers
