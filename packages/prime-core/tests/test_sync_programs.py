"""Sync clients in programs of their own: Ctrl-C, forks, exits."""

from __future__ import annotations

import os
import signal
import time

import pytest
from programs import end, line, run, start
from raw_server import RawServer, answer, silence

CLIENT = """
    import sys
    from prime_core import APIClient, Config
    from rows import KEY

    client = APIClient(config=Config(KEY, base_url=sys.argv[1]))
"""


def program(text: str) -> str:
    """A program that starts with a sync client."""
    lines = text.strip("\n").splitlines()
    return CLIENT + "\n".join(lines)


def test_a_program_that_forgets_to_close_ends(server: RawServer) -> None:
    started = time.monotonic()
    done = run(
        program("""
    print(client.get("/thing"))
    """),
        server.url,
    )
    assert time.monotonic() - started < 10
    assert (done.code, done.out, done.err) == (0, "{}", "")


@pytest.mark.parametrize(
    "ending", ["sys.exit(3)", "raise LookupError('x')", "import os; os._exit(3)"]
)
def test_a_program_that_ends_early_ends(server: RawServer, ending: str) -> None:
    done = run(
        program(f"""
    client.get("/thing")
    {ending}
    """),
        server.url,
    )
    assert done.code == (1 if "raise" in ending else 3)


def test_an_iterator_left_over_at_exit_does_not_hold_the_program(server: RawServer) -> None:
    done = run(
        program("""
    from prime_core.sync import iterate

    async def numbers():
        for number in range(10):
            yield number

    left_over = iterate(numbers)
    print(next(left_over))
    """),
        server.url,
        timeout=10,
    )
    assert (done.code, done.out, done.err) == (0, "0", "")


def test_a_worker_thread_that_never_ends_does_not_hold_the_program(server: RawServer) -> None:
    done = run(
        program("""
    import asyncio, time
    from prime_core.sync import in_thread, run

    async def main():
        asyncio.ensure_future(in_thread(time.sleep)(60))
        await asyncio.sleep(0.05)
        print("left")

    run(main())
    """),
        server.url,
        timeout=10,
    )
    assert (done.code, done.out, done.err) == (0, "left", "")


INTERRUPTED = """
    import asyncio
    from prime_core.sync import run

    async def work():
        try:
            await client._async.get("/thing")
        finally:
            await asyncio.sleep(0.05)
            print("cleaned up")

    print("ready")
    try:
        run(work())
    except KeyboardInterrupt:
        print("interrupted")
    print(client.get("/other"))
    """


@pytest.mark.parametrize("moment", ["at once", "later"])
def test_ctrl_c_stops_the_coroutine_behind_a_sync_call(server: RawServer, moment: str) -> None:
    server.respond = lambda request: silence() if "thing" in request.target else answer()
    process = start(program(INTERRUPTED), server.url)
    assert line(process) == "ready"
    server.wait_for(1)
    time.sleep(0 if moment == "at once" else 0.2)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    done = end(process)
    assert time.monotonic() - sent < 5
    assert (done.code, done.out) == (0, "cleaned up\ninterrupted\n{}"), done.err


def test_ctrl_c_that_nobody_catches_ends_the_program(server: RawServer) -> None:
    server.steps = [silence()]
    process = start(
        program("""
    client.get("/thing")
    """),
        server.url,
    )
    server.wait_for(1)
    process.send_signal(signal.SIGINT)
    done = end(process)
    assert done.code in (-signal.SIGINT, 130)
    assert done.err.endswith("KeyboardInterrupt")
    assert "pit_" not in done.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_calls_on_a_loop_thread_of_its_own(server: RawServer) -> None:
    done = run(
        program("""
    import os

    client.get("/parent")
    child = os.fork()
    if child == 0:
        client.get("/child")
        sys.exit(7)
    _, status = os.waitpid(child, 0)
    print("child", os.waitstatus_to_exitcode(status))
    client.get("/parent")
    client.close()
    """),
        server.url,
    )
    assert (done.code, done.out) == (0, "child 7"), done.err
    connections = [(request.target, request.connection) for request in server.requests]
    assert connections == [
        ("/api/v1/parent", 1),
        ("/api/v1/child", 2),
        ("/api/v1/parent", 1),
    ]


def test_a_client_is_made_before_a_pool_of_processes(server: RawServer) -> None:
    done = run(
        program("""
    import multiprocessing

    def work(number):
        return client.get(f"/child/{number}")

    client.get("/parent")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(4)))
    client.get("/parent")
    """),
        server.url,
    )
    assert (done.code, done.out) == (0, "[{}, {}, {}, {}]"), done.err
