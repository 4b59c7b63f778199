"""The client for routes without a method of their own, which the packages share."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from raw_server import RawServer, answer
from rows import KEY

import prime_core
from prime_core import AsyncAPIClient, Config
from prime_core.decoding import read_object
from prime_core.errors import ConfigurationError, ServerError
from prime_core.operations import Service, unnamed_operation

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture
async def client(server: RawServer) -> AsyncIterator[AsyncAPIClient]:
    async with AsyncAPIClient(config=Config(KEY, base_url=server.url)) as client:
        yield client


async def test_each_method_reaches_the_route_below_the_versioned_root(
    server: RawServer, client: AsyncAPIClient
) -> None:
    await client.get("/thing", {"page": 2, "all": True, "none": None, "label": ["a", "b"]})
    await client.post("/thing", {"name": "ü"})
    await client.post("/empty")
    await client.patch("/thing/x%2Fy", {"a": None})
    await client.delete("/thing/x")
    await client.request("put", "/thing", {"q": "1"}, {"b": 2})
    assert server.targets == [
        "GET /api/v1/thing?page=2&all=true&label=a&label=b",
        "POST /api/v1/thing",
        "POST /api/v1/empty",
        "PATCH /api/v1/thing/x%2Fy",
        "DELETE /api/v1/thing/x",
        "PUT /api/v1/thing?q=1",
    ]
    assert server.requests[1].json == {"name": "ü"}
    assert server.requests[2].body == b""
    assert server.requests[3].json == {"a": None}


@pytest.mark.parametrize(
    ("method", "idempotent", "requests"),
    [
        ("GET", False, 3),
        ("PUT", False, 3),
        ("DELETE", False, 3),
        ("POST", False, 1),
        ("POST", True, 3),
        ("PATCH", False, 1),
        ("PATCH", True, 1),
    ],
)
async def test_only_what_may_be_repeated_is_sent_again(
    server: RawServer, client: AsyncAPIClient, method: str, idempotent: bool, requests: int
) -> None:
    server.steps = [answer(502)]
    with pytest.raises(ServerError, match=f"{method} /thing"):
        await client.request(method, "/thing", idempotent_post=idempotent)
    assert len(server.requests) == requests


@pytest.mark.parametrize("method", ["HEAD", "", "GET /x", "CONNECT"])
async def test_an_unknown_method_is_refused(
    server: RawServer, client: AsyncAPIClient, method: str
) -> None:
    with pytest.raises(ValueError, match="method"):
        await client.request(method, "/thing")
    assert server.connections == 0


@pytest.mark.parametrize(
    "endpoint",
    ["thing", "", "https://evil.invalid/", "/a b", "/x HTTP/1.1\r\nX: y", "/ü", "/a#b", "/a\n"],
)
async def test_an_endpoint_that_is_no_encoded_path_is_refused(
    server: RawServer, client: AsyncAPIClient, endpoint: str
) -> None:
    with pytest.raises(ValueError, match="endpoint"):
        await client.get(endpoint)
    assert server.connections == 0


async def test_a_query_stands_in_the_endpoint_or_in_the_parameters(
    server: RawServer, client: AsyncAPIClient
) -> None:
    await client.delete("/thing?label=a%2Fb")
    with pytest.raises(ValueError, match="endpoint"):
        await client.get("/thing?page=1", {"per_page": 2})
    assert server.targets == ["DELETE /api/v1/thing?label=a%2Fb"]


async def test_routes_without_a_row_leave_nothing_behind(
    server: RawServer, client: AsyncAPIClient
) -> None:
    # One and the same path may belong to two services, and there is no end of paths.
    transport = client._share(client)
    services: list[Service] = ["control", "traces"]
    for service in services:
        operation = unnamed_operation("GET", "/runs", "safe", service)
        call = transport.prepare(operation, read_object)
        base = client.base_url if service == "control" else client.config.traces_url
        assert str(call.url) == f"{base}/api/v1/runs"
    for number in range(20):
        await client.get(f"/thing/{number}")
    assert transport._static_urls == {}


async def test_the_clients_account_can_be_read_but_is_not_shown(
    server: RawServer, client: AsyncAPIClient
) -> None:
    assert client.api_key == KEY
    assert client.base_url == server.url
    assert client.require_auth
    assert KEY not in repr(client)
    assert repr(client).startswith("AsyncAPIClient(")


async def test_throttles_are_counted(server: RawServer, client: AsyncAPIClient) -> None:
    server.steps = [answer(429, Retry_After="0"), answer(429, Retry_After="0"), answer()]
    await client.get("/thing")
    assert client.throttled == 2


def test_a_key_and_a_configuration_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="not both"):
        AsyncAPIClient("pit_x", config=Config(KEY))


def test_a_setting_out_of_range_is_refused_when_the_client_is_made() -> None:
    with pytest.raises(ValueError, match="timeout"):
        AsyncAPIClient(KEY, timeout=0)


async def test_a_missing_key_is_told_at_the_first_call_only(server: RawServer) -> None:
    client = AsyncAPIClient(config=Config(base_url=server.url))
    with pytest.raises(ConfigurationError):
        await client.get("/thing")
    open_client = AsyncAPIClient(None, False, config=Config(base_url=server.url))
    assert await open_client.get("/thing") == {}
    await open_client.aclose()


async def test_a_pickled_client_works_where_it_arrives(server: RawServer) -> None:
    client = AsyncAPIClient(config=Config(KEY, base_url=server.url, portable=True))
    await client.get("/thing")
    async with pickle.loads(pickle.dumps(client)) as twin:
        assert await twin.get("/thing") == {}
    await client.aclose()
    assert server.connections == 2


def test_every_name_of_the_package_root_is_there_and_no_other() -> None:
    for name in prime_core.__all__:
        value = getattr(prime_core, name)
        assert value.__name__ == name
        assert value is getattr(importlib.import_module(value.__module__), name)
    assert set(prime_core.__all__) <= set(dir(prime_core))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = prime_core.no_such_name


def test_the_errors_are_loaded_without_the_transport() -> None:
    script = (
        "import sys; from prime_core import APIError, Config, RateLimit;"
        "print(sorted({'aiohttp', 'pydantic', 'tenacity', 'yarl'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30)
    assert (done.stdout.decode().strip(), done.stderr) == ("[]", b"")
