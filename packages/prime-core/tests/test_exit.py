"""However a program ends, what it asked for and nobody answers for is undone."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from programs import Ended, end, line, run, start
from raw_server import RawServer, Received, Step, after, answer, silence

# A program with a create whose answer does not come. Its address is a name, which must still
# be resolved when the interpreter exits.
PROGRAM = """
    import asyncio, os, signal, sys
    from prime_core import reaper as reaper_module
    from prime_core.creation import create_once
    from prime_core.sync import run
    from rows import CREATE, DELETE, Thing
    from transports import transport_to

    transport = transport_to(f"http://localhost:{sys.argv[1]}")

    async def discard(made):
        await transport.request(DELETE, path={"thing_id": made.id})

    async def create():
        return await create_once(
            transport, CREATE, Thing, body=b"{}", key=None, team=None,
            description="Sandbox 'a'", discard=discard,
        )

    async def told():
        "Waits until the test closes this program's input."
        await asyncio.to_thread(sys.stdin.readline)
"""


class Platform:
    """Makes one thing a key; the first answers to creates never come."""

    def __init__(self, server: RawServer, lost: int = 1) -> None:
        self.server = server
        self.lost = lost
        self.made: dict[str, str] = {}
        self.deleted: Counter[str] = Counter()
        server.respond = self.respond

    def respond(self, request: Received) -> Step:
        if request.method == "DELETE":
            self.deleted[request.target.rpartition("/")[2]] += 1
            return answer(204)
        key = request.json["idempotency_key"]
        made = self.made.setdefault(key, f"t{len(self.made) + 1}")
        if self.lost:
            self.lost -= 1
            return silence()
        return answer(200, {"id": made})

    @property
    def live(self) -> set[str]:
        return set(self.made.values()) - set(self.deleted)


def program(text: str) -> str:
    return PROGRAM + text.strip("\n")


@pytest.fixture
def platform(server: RawServer) -> Platform:
    return Platform(server)


ENDINGS = {
    "exception": """
    async def main():
        asyncio.ensure_future(create())
        await told()
        raise LookupError("in the program")

    asyncio.run(main())
    """,
    "sys.exit": """
    async def main():
        asyncio.ensure_future(create())
        await told()
        sys.exit(3)

    asyncio.run(main())
    """,
    "end of the loop": """
    async def main():
        asyncio.ensure_future(create())
        await told()

    asyncio.run(main())
    """,
    "a loop that is dropped": """
    loop = asyncio.new_event_loop()
    task = loop.create_task(create())
    loop.run_until_complete(told())
    """,
    "a sync call in another thread": """
    import threading
    threading.Thread(target=run, args=(create(),), daemon=True).start()
    sys.stdin.readline()
    """,
}


def test_a_create_in_flight_at_the_end_of_a_program_is_undone_however_it_ends() -> None:
    def ended(ending: str) -> tuple[int, set[str], str]:
        with RawServer() as server:
            platform = Platform(server)
            process = start(program(ENDINGS[ending]), str(server.port))
            server.wait_for(1)
            done = end(process)  # closes its input
            return len(platform.made), platform.live, done.err

    with ThreadPoolExecutor() as programs:  # side by side, since each takes a while to start
        results = dict(zip(ENDINGS, programs.map(ended, ENDINGS), strict=True))
    for ending, (made, live, err) in results.items():
        assert (ending, made, live) == (ending, 1, set()), err
        assert "left behind" not in err
        assert "pit_" not in err


def interrupted(server: RawServer, text: str, times: int, pause: float) -> Ended:
    """Runs a program and interrupts it so many times once its create is on its way."""
    process = start(program(text), str(server.port))
    server.wait_for(1)
    time.sleep(0.05)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(pause)
    return end(process, timeout=20)


ASYNC = """
    async def main():
        try:
            await create()
        finally:
            print("cleaned up")

    asyncio.run(main())
"""

SYNC = """
    run(create())
"""


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_ctrl_c_leaves_nothing_behind_however_often(kind: str) -> None:
    def ended(times: int) -> tuple[int, set[str], Ended]:
        with RawServer() as server:
            platform = Platform(server)
            done = interrupted(server, {"async": ASYNC, "sync": SYNC}[kind], times, pause=0.02)
            return len(platform.made), platform.live, done

    with ThreadPoolExecutor() as programs:
        for made, live, done in programs.map(ended, [1, 2, 3]):
            assert (made, live) == (1, set()), done.err
            assert done.code != 0
            assert "left behind" not in done.err


def test_an_exit_waits_for_a_slow_platform_while_it_is_interrupted(
    server: RawServer,
) -> None:
    platform = Platform(server, lost=1)
    respond = platform.respond

    def slow(request: Received) -> Step:
        step = respond(request)
        return after(0.4, step) if request.method == "DELETE" else step

    server.respond = slow
    done = interrupted(server, ASYNC, times=4, pause=0.15)
    assert platform.live == set(), done.err


def test_what_is_owed_and_not_called_in_is_undone_at_exit(
    platform: Platform, server: RawServer
) -> None:
    platform.lost = 0
    done = run(
        program("""
    from prime_core.reaper import reaper

    async def nothing():
        pass

    async def main():
        obligation = reaper.owe(transport, "A thing", nothing)
        await create_once(
            transport, CREATE, Thing, body=b"{}", key=None, team=None,
            description="A thing", discard=discard, obligation=obligation,
        )

    asyncio.run(main())
    """),
        str(server.port),
    )
    assert (done.code, done.err) == (0, "")
    assert platform.deleted == {"t1": 1}


def test_what_the_caller_has_is_not_undone_at_exit(platform: Platform, server: RawServer) -> None:
    platform.lost = 0
    done = run(program("    print(run(create()).id)"), str(server.port))
    assert (done.code, done.out) == (0, "t1"), done.err
    assert platform.live == {"t1"}


def test_an_exit_that_cannot_undo_is_bounded_in_time_and_says_so(
    platform: Platform, server: RawServer
) -> None:
    platform.lost = 99
    started = time.monotonic()
    done = run(
        program("""
    reaper_module.EXIT_PATIENCE = 0.5

    async def main():
        asyncio.ensure_future(create())
        await asyncio.sleep(0.1)

    asyncio.run(main())
    """),
        str(server.port),
    )
    assert time.monotonic() - started < 14
    assert "Sandbox 'a' was left behind at exit" in done.err


def test_a_new_create_at_exit_is_refused(platform: Platform, server: RawServer) -> None:
    platform.lost = 0
    done = run(
        program("""
    import atexit

    def late():
        try:
            run(create())
        except RuntimeError as error:
            print(error)

    # The reaper is done when it comes to this one.
    atexit.unregister(reaper_module.reaper.finish)
    atexit.register(late)
    atexit.register(reaper_module.reaper.finish)
    """),
        str(server.port),
    )
    assert done.out == "Sandbox 'a' is not made while the interpreter exits", done.err
    assert server.requests == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_of_multiprocessing_undoes_what_it_asked_for(
    platform: Platform, server: RawServer
) -> None:
    done = run(
        program("""
    import multiprocessing

    async def work():
        asyncio.ensure_future(create())
        await asyncio.sleep(0.2)

    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(work()))
    child.start()
    child.join()
    print(child.exitcode)
    """),
        str(server.port),
    )
    assert (done.code, done.out) == (0, "0"), done.err
    assert platform.deleted == {"t1": 1}, done.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_owes_nothing_and_the_parent_still_does(
    platform: Platform, server: RawServer
) -> None:
    process = start(
        program("""
    from prime_core.sync import loop_thread

    task = loop_thread().submit(create())
    import time
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    print("child ended")
    sys.stdin.read()
    """),
        str(server.port),
    )
    assert line(process) == "child ended"
    assert (len(server.requests), platform.deleted) == (1, {}), "the child undoes nothing"
    done = end(process)
    assert platform.deleted == {"t1": 1}, done.err
