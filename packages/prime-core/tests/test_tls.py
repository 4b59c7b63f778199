"""TLS: whom the client trusts, and what it says when it does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from certificates import Authority, make_authority
from programs import run
from raw_server import RawServer, answer
from rows import KEY, READ
from transports import Connect

from prime_core.errors import APIConnectionError, APIResponseError

READ_ONCE = """
    import asyncio, sys
    from rows import READ
    from transports import transport_to

    async def main():
        transport = transport_to(sys.argv[1])
        print(await transport.request(READ))
        await transport.aclose()

    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def secure(authority: Authority) -> Iterator[RawServer]:
    with RawServer(answer(200, {"id": "t1"}), tls=authority.server) as secure:
        yield secure


async def test_a_private_ca_is_trusted_by_context(
    secure: RawServer, connect: Connect, authority: Authority
) -> None:
    transport = connect(secure.url, ssl_context=authority.client)
    assert await transport.request(READ) == {"id": "t1"}
    assert await transport.request(READ) == {"id": "t1"}
    assert secure.connections == 1
    assert secure.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_private_ca_is_trusted_by_environment(secure: RawServer, authority: Authority) -> None:
    done = run(READ_ONCE, secure.url, env={"SSL_CERT_FILE": str(authority.file)})
    assert (done.code, done.out, done.err) == (0, "{'id': 't1'}", "")


async def test_an_unknown_ca_is_a_typed_error_that_is_not_tried_again(
    secure: RawServer, connect: Connect
) -> None:
    with pytest.raises(APIConnectionError, match=r"SSL_CERT_FILE|ssl_context") as caught:
        await connect(secure.url).request(READ)
    error = caught.value
    assert (error.sent, error.attempts) == ("no", 1)
    assert "certificate verify failed" in str(error)
    assert secure.requests == []


async def test_a_certificate_of_another_name_is_a_typed_error(
    secure: RawServer, connect: Connect, authority: Authority
) -> None:
    transport = connect(f"https://localhost:{secure.port}", ssl_context=authority.client)
    with pytest.raises(APIConnectionError, match="localhost") as caught:
        await transport.request(READ)
    assert (caught.value.sent, caught.value.attempts) == ("no", 1)
    assert secure.requests == []


async def test_a_server_that_speaks_no_tls_is_a_typed_error(
    server: RawServer, connect: Connect
) -> None:
    server.greeting = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with pytest.raises(APIConnectionError, match="TLS") as caught:
        await connect(server.url.replace("http:", "https:")).request(READ)
    assert (caught.value.sent, caught.value.attempts) == ("no", 1)


async def test_a_redirect_from_tls_to_plain_is_refused(
    server: RawServer, secure: RawServer, connect: Connect, authority: Authority
) -> None:
    secure.steps = [answer(302, b"", Location=f"{server.url}/plain")]
    with pytest.raises(APIResponseError, match="must not go"):
        await connect(secure.url, ssl_context=authority.client).request(READ)
    assert server.connections == 0


async def test_a_redirect_from_plain_to_tls_is_followed_without_the_key(
    server: RawServer, secure: RawServer, connect: Connect, authority: Authority
) -> None:
    server.steps = [answer(302, b"", Location=f"{secure.url}/secure")]
    transport = connect(ssl_context=authority.client)
    assert await transport.request(READ) == {"id": "t1"}
    assert "authorization" not in secure.requests[0].headers
