"""One client on many event loops, threads and processes: nothing is shared that must not be."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from certificates import make_authority
from programs import run
from raw_server import RawServer, answer, silence
from rows import CREATE, POKE, READ
from transports import Connect, transport_to

from prime_core import sync
from prime_core.errors import APIConnectionError, RateLimitError

DESCRIPTORS = "/proc/self/fd"
counts_descriptors = pytest.mark.skipif(
    not os.path.isdir(DESCRIPTORS), reason="descriptors are counted in /proc"
)


def descriptors() -> int:
    return len(os.listdir(DESCRIPTORS))


def settles_at(most: int) -> bool:
    """Whether the number of descriptors comes down; the server's side closes a moment later."""
    deadline = time.monotonic() + 3.0
    while descriptors() > most and time.monotonic() < deadline:
        time.sleep(0.01)
    return descriptors() <= most


@pytest.fixture(params=["plain", "TLS"])
def origin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RawServer, dict[str, Any]]]:
    """A server, and the settings that its clients need."""
    if request.param == "plain":
        with RawServer() as server:
            yield server, {}
    else:
        authority = make_authority(tmp_path_factory.mktemp("ca"))
        with RawServer(tls=authority.server) as server:
            yield server, {"ssl_context": authority.client}


@counts_descriptors
def test_one_client_serves_two_hundred_runs_without_more_descriptors(
    origin: tuple[RawServer, dict[str, Any]],
) -> None:
    server, needs = origin
    transport = transport_to(server.url, **needs)

    async def main() -> None:
        await transport.request(READ)

    for _ in range(3):
        asyncio.run(main())
    before = descriptors()
    for _ in range(200):
        asyncio.run(main())
    assert settles_at(before)
    assert len(server.requests) == server.connections == 203
    asyncio.run(transport.aclose())
    assert settles_at(before - 2)


@counts_descriptors
def test_the_connections_of_a_closed_loop_are_closed_with_the_client(
    origin: tuple[RawServer, dict[str, Any]],
) -> None:
    server, needs = origin
    before = descriptors()
    transport = transport_to(server.url, **needs)

    async def main() -> None:
        await asyncio.gather(*(transport.request(READ) for _ in range(5)))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
        asyncio.run(transport.aclose())
        gc.collect()
    assert [str(found.message) for found in caught] == []
    assert settles_at(before)


def test_loops_in_threads_use_one_client_at_once(server: RawServer) -> None:
    transport = transport_to(server.url)
    results: list[object] = []

    async def main() -> None:
        results.extend(await asyncio.gather(*(transport.request(READ) for _ in range(20))))

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [{}] * 80
    asyncio.run(transport.aclose())


def test_closing_on_one_loop_closes_the_idle_connections_of_another(server: RawServer) -> None:
    transport = transport_to(server.url)
    ready, closed = threading.Event(), threading.Event()
    results: list[object] = []

    async def other() -> None:
        await transport.request(READ)
        ready.set()
        await asyncio.to_thread(closed.wait, 5)
        results.append(await transport.request(READ))
        await transport.aclose()

    thread = threading.Thread(target=asyncio.run, args=(other(),))
    thread.start()
    assert ready.wait(5)
    asyncio.run(transport.aclose())
    closed.set()
    thread.join(5)
    assert results == [{}]
    assert server.connections == 2


async def test_a_closed_client_opens_again_when_it_is_used(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    await transport.request(READ)
    await transport.aclose()
    await transport.aclose()
    await transport.request(READ)
    assert server.connections == 2


async def test_a_safe_call_under_way_when_its_client_is_closed_goes_on(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [silence(), answer(200, {"id": "t1"})]
    transport = connect()
    call = asyncio.ensure_future(transport.request(CREATE, body=b"{}", key="k1", timeout=3.0))
    await server.arrived(1)
    await transport.aclose()
    assert await call == {"id": "t1"}
    assert server.connections == 2


async def test_an_unsafe_call_under_way_when_its_client_is_closed_is_a_typed_error(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [silence()]
    transport = connect()
    call = asyncio.ensure_future(transport.request(POKE, timeout=3.0))
    await server.arrived(1)
    await transport.aclose()
    started = time.monotonic()
    with pytest.raises(APIConnectionError) as caught:
        await call
    assert time.monotonic() - started < 1.0
    assert caught.value.sent == "unknown"
    assert len(server.requests) == 1


async def test_a_throttled_call_whose_client_is_closed_keeps_the_platforms_pace(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(429, Retry_After="0.3")]
    transport = connect(max_throttle_wait=1.0)
    call = asyncio.ensure_future(transport.request(READ, timeout=5.0))
    await server.arrived(1)
    await transport.aclose()
    with pytest.raises(RateLimitError):
        await call
    assert len(server.requests) <= 6


@pytest.mark.parametrize("run_it", [asyncio.run, sync.run], ids=["own loop", "loop thread"])
@pytest.mark.parametrize("in_a_cycle", [False, True])
def test_a_client_that_is_forgotten_warns_and_closes_its_connections(
    server: RawServer, run_it: Callable[[Coroutine[Any, Any, None]], None], in_a_cycle: bool
) -> None:
    async def main() -> None:
        transport = transport_to(server.url, user_agent="prime-x/1")
        await transport.request(READ)
        if in_a_cycle:
            vars(transport)["itself"] = transport

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_it(main())
        gc.collect()
    texts = [str(found.message) for found in caught if found.category is ResourceWarning]
    assert len(texts) == 1, "aiohttp and asyncio have nothing to add"
    assert texts[0].startswith("unclosed Prime client (prime-x/1")


async def test_a_client_that_is_closed_or_was_never_used_does_not_warn(server: RawServer) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unused, used = transport_to(server.url), transport_to(server.url)
        await used.request(READ)
        await used.aclose()
        del unused, used
        gc.collect()
    assert [str(found.message) for found in caught] == []


FORK = """
    import asyncio, os, sys
    from rows import READ
    from transports import transport_to

    transport = transport_to(sys.argv[1])

    async def read():
        return await transport.request(READ, timeout=5.0)

    async def main():
        await read()
        child = os.fork()
        if child == 0:
            os._exit(child_main())
        _, status = os.waitpid(child, 0)
        print("child", os.waitstatus_to_exitcode(status))
        print(await read())
        await transport.aclose()

    def child_main():
        asyncio.events._set_running_loop(None)
        return 0 if asyncio.run(read()) == {} else 1

    asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_its_own_connections_and_leaves_the_parents_alone(
    server: RawServer,
) -> None:
    done = run(FORK, server.url)
    assert (done.code, done.out) == (0, "child 0\n{}"), done.err
    assert [request.connection for request in server.requests] == [1, 2, 1]
    ids = {request.headers["x-request-id"] for request in server.requests}
    assert len(ids) == len({request_id[:20] for request_id in ids}) + 1 == 3


STOPPED_LOOP = """
    import asyncio, os, sys
    from rows import READ
    from transports import transport_to

    transport = transport_to(sys.argv[1])
    loop = asyncio.new_event_loop()

    def read():
        return loop.run_until_complete(transport.request(READ, timeout=3.0))

    read()
    child = os.fork()
    if child == 0:
        asyncio.run(transport.aclose())
        sys.exit(0)
    os.waitpid(child, 0)
    print(read())
    loop.run_until_complete(transport.aclose())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_closes_its_client_leaves_the_parents_loop_alone(
    server: RawServer,
) -> None:
    # Closing a connection that the child inherited would take it off the parent's selector.
    done = run(STOPPED_LOOP, server.url)
    assert (done.code, done.out) == (0, "{}"), done.err
    assert [request.connection for request in server.requests] == [1, 1]


MULTIPROCESSING = """
    import asyncio, multiprocessing, sys
    from rows import READ
    from transports import transport_to

    transport = transport_to(sys.argv[1])

    async def read():
        result = await transport.request(READ, timeout=5.0)
        return result

    def work(number):
        return asyncio.run(read())

    if __name__ == "__main__":
        print(asyncio.run(read()))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, range(4)))
        print(asyncio.run(read()))
        asyncio.run(transport.aclose())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_pool_of_forked_processes_uses_its_parents_client(server: RawServer) -> None:
    done = run(MULTIPROCESSING, server.url)
    assert (done.code, done.out) == (0, "{}\n[{}, {}, {}, {}]\n{}"), done.err
    assert "Error" not in done.err
