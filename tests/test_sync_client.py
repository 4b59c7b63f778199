"""The sync client wherever Python runs: scripts, loops, threads, forks, interrupted, forgotten."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from textwrap import dedent

import pytest

from prime_local.faults import FaultRule
from prime_local.subprocess_server import PlatformProcess

PRELUDE = """
import asyncio, os, sys, threading, time
from prime_sandboxes import (
    APIClient, AsyncSandboxClient, CreateSandboxRequest, SandboxClient,
)
REQUEST = CreateSandboxRequest(name="sync", docker_image="python:3.11-slim")
"""


def start(program: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", PRELUDE + dedent(program)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(program: str, environment: dict[str, str], seconds: float = 30) -> str:
    """What a program prints; it must end by itself, in time and without an error."""
    process = start(program, environment)
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, stderr
    assert "never retrieved" not in stderr
    assert "Traceback" not in stderr, stderr
    return stdout


def test_a_script(program_environment: dict[str, str]) -> None:
    program = """
    with SandboxClient(APIClient()) as client:
        sandbox = client.create(REQUEST)
        client.wait_for_creation(sandbox.id)
        print(client.execute_command(sandbox.id, "echo hello").stdout, end="")
        client.delete(sandbox.id)
    """
    assert output_of(program, program_environment) == "hello\n"


def test_inside_a_running_event_loop_it_works_and_warns_once(
    program_environment: dict[str, str],
) -> None:
    program = """
    import warnings
    async def main():
        with warnings.catch_warnings(record=True) as caught, SandboxClient() as client:
            warnings.simplefilter("always")
            client.list()
            client.list()
        print([str(w.message) for w in caught if w.category is RuntimeWarning])
    asyncio.run(main())
    """
    (line,) = output_of(program, program_environment).splitlines()
    assert line.count("blocks the running event loop") == 1


def test_a_client_made_before_a_fork_works_in_the_child_and_the_parent(
    program_environment: dict[str, str],
) -> None:
    program = """
    client = SandboxClient(APIClient())
    sandbox = client.create(REQUEST)
    child = os.fork()
    if child == 0:
        print("child", client.get(sandbox.id).id == sandbox.id, flush=True)
        mine = client.create(REQUEST)
        client.delete(mine.id)
        client.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print("parent", client.get(sandbox.id).id == sandbox.id)
    client.delete(sandbox.id)
    client.close()
    """
    assert output_of(program, program_environment) == "child True\nparent True\n"


def test_a_forked_child_that_exits_leaves_the_parents_fleet_alone(
    program_environment: dict[str, str],
) -> None:
    program = """
    def work(sandbox, item):
        if item == 0:
            child = os.fork()
            if child == 0:
                sys.exit(0)
            os.waitpid(child, 0)
        return sandbox.execute_command("echo alive").stdout
    with SandboxClient() as client, client.fleet(limit=2) as fleet:
        outcomes = list(fleet.map(work, range(2), request=REQUEST))
        print([outcome.value for outcome in outcomes])
    """
    process = start(program, program_environment)
    stdout, _ = process.communicate(timeout=30)
    assert "['alive\\n', 'alive\\n']" in stdout


def test_many_threads_share_one_client(program_environment: dict[str, str]) -> None:
    program = """
    client = SandboxClient(APIClient())
    ids = []
    def work():
        sandbox = client.create(REQUEST)
        ids.append(client.get(sandbox.id).id)
        client.delete(sandbox.id)
    threads = [threading.Thread(target=work) for _ in range(20)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    client.close()
    print(len(set(ids)))
    """
    assert output_of(program, program_environment) == "20\n"


def test_two_hundred_event_loops_beside_it_leak_no_descriptor(
    program_environment: dict[str, str],
) -> None:
    program = """
    client = SandboxClient(APIClient())
    one = AsyncSandboxClient()
    async def main():
        await one.list(per_page=1)
        client.list(per_page=1)
    def descriptors():
        return len(os.listdir("/proc/self/fd"))
    asyncio.run(main())
    before = descriptors()
    for _ in range(200):
        asyncio.run(main())
    print(descriptors() - before <= 2)
    client.close()
    asyncio.run(one.aclose())
    """
    environment = {**program_environment, "PYTHONWARNINGS": "ignore"}
    assert output_of(program, environment, seconds=60) == "True\n"


def test_ctrl_c_stops_the_coroutine_behind_a_call(
    platform_process: PlatformProcess, program_environment: dict[str, str]
) -> None:
    program = """
    from prime_core.sync import loop_thread
    client = SandboxClient(APIClient())
    sandbox = client.create(REQUEST)
    client.wait_for_creation(sandbox.id)
    try:
        print("running", flush=True)
        client.execute_command(sandbox.id, "sleep 60")
    except KeyboardInterrupt:
        async def count():
            # The command itself is killed by another one, in the background.
            return sum("execute_command" in repr(task) for task in asyncio.all_tasks())
        print("tasks left", loop_thread().run(count()))
        client.delete(sandbox.id)
        client.close()
    """
    process = start(program, program_environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    stdout, stderr = process.communicate(timeout=15)
    assert stdout == "tasks left 0\n", stderr
    assert time.monotonic() - began < 5
    assert platform_process.ledger()["sandboxes"]["live"] == 0


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_program_that_forgets_to_close_it_exits_quietly(
    program_environment: dict[str, str], style: str
) -> None:
    program = {
        "sync": """
        client = SandboxClient(APIClient())
        client.delete(client.create(REQUEST).id)
        print("done")
        """,
        "async": """
        client = AsyncSandboxClient()
        async def main():
            await client.delete((await client.create(REQUEST)).id)
        asyncio.run(main())
        print("done")
        """,
    }[style]
    environment = {**program_environment, "PYTHONDEVMODE": "", "PYTHONWARNINGS": "default"}
    process = start(program, environment)
    stdout, stderr = process.communicate(timeout=15)
    assert stdout == "done\n"
    assert process.returncode == 0
    # A ResourceWarning may tell of it; noise of the transport below may not.
    assert "client_session" not in stderr
    assert "Traceback" not in stderr


def test_an_interrupt_as_the_answer_arrives_does_not_lose_the_sandbox(
    platform_process: PlatformProcess, program_environment: dict[str, str]
) -> None:
    program = """
    import prime_core.sync
    original = prime_core.sync._result
    def interrupted(future):
        original(future)
        prime_core.sync._result = original
        raise KeyboardInterrupt
    client = SandboxClient(APIClient())
    prime_core.sync._result = interrupted
    try:
        client.create(REQUEST)
    except KeyboardInterrupt:
        print("interrupted")
    client.close()
    """
    assert output_of(program, program_environment) == "interrupted\n"
    ledger = platform_process.ledger()["sandboxes"]
    assert (ledger["created"], ledger["live"]) == (1, 0)


def test_ctrl_c_reaches_a_sync_call_that_blocks_an_event_loop(
    platform_process: PlatformProcess, program_environment: dict[str, str]
) -> None:
    program = """
    async def main():
        with SandboxClient() as client, client.fleet(limit=2) as fleet:
            def work(sandbox, item):
                print("working", flush=True)
                time.sleep(60)
            list(fleet.map(work, range(2), request=REQUEST))
    asyncio.run(main())
    """
    process = start(program, program_environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=15)
    assert "KeyboardInterrupt" in stderr
    assert platform_process.ledger()["sandboxes"]["live"] == 0


def test_a_child_of_multiprocessing_cleans_up_what_it_asked_for(
    platform_process: PlatformProcess, program_environment: dict[str, str]
) -> None:
    platform_process.add_faults(FaultRule(operation="create_sandbox", times=1, delay_after=1.5))
    program = """
    import multiprocessing, signal
    def child():
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.7)
        try:
            SandboxClient().create(REQUEST)
        except KeyboardInterrupt:
            pass
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    print(process.exitcode)
    """
    assert output_of(program, program_environment) == "0\n"
    assert platform_process.ledger()["sandboxes"]["created"] == 1
    assert platform_process.ledger()["sandboxes"]["live"] == 0
