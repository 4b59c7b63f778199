"""Live processes: how they begin and end, and that none is left behind."""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_processes import ECHO, is_alive, rest, until, until_dead, until_written

import prime_sandboxes.process_session
from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    SandboxNotRunningError,
    SandboxTimeoutError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(60)


async def test_closing_ends_a_process_that_does_not_mind_sigterm(
    client: AsyncSandboxClient, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prime_sandboxes.process_session, "END_PATIENCE", 0.3)
    box = await running(client)
    command = "trap '' TERM; echo on; while :; do sleep 0.05; done"
    async with await client.open_process(box.id, command) as process:
        await until(process.stdout, b"on")
        began = time.monotonic()
    assert 0.3 <= time.monotonic() - began < 3
    assert process.returncode == 137
    assert not is_alive(process.pid)
    await process.aclose()
    assert await rest(process.stdout) == b""


async def test_a_cancelled_close_goes_on(
    client: AsyncSandboxClient, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prime_sandboxes.process_session, "END_PATIENCE", 0.3)
    box = await running(client)
    command = "trap '' TERM; echo on; while :; do sleep 0.05; done"
    process = await client.open_process(box.id, command)
    await until(process.stdout, b"on")
    closing = asyncio.create_task(process.aclose())
    await asyncio.sleep(0.05)
    began = time.monotonic()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert time.monotonic() - began < 0.2
    await until_dead(process.pid)
    await process.aclose()


async def test_an_exception_in_the_body_closes_the_process(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    with pytest.raises(ZeroDivisionError):
        async with await client.open_process(box.id, "sleep 60") as process:
            raise ZeroDivisionError
    assert not is_alive(process.pid)


async def test_a_loop_that_ends_in_a_close_still_ends_the_process(
    home: Path, running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second Ctrl-C makes asyncio.run cancel everything, the close included."""
    monkeypatch.setattr(prime_sandboxes.process_session, "END_PATIENCE", 0.3)
    trace = tmp_path / "pid"

    async def work() -> None:
        async with AsyncSandboxClient() as client:
            box = await running(client)
            command = f"trap '' TERM; echo $$ > {trace}; while :; do sleep 0.05; done"
            process = await client.open_process(box.id, command)
            await until_written(trace)
            asyncio.get_running_loop().call_later(
                0.1, lambda: [task.cancel() for task in asyncio.all_tasks()]
            )
            await process.aclose()

    def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(work())

    async with LocalPlatform(limits=False) as platform:
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        await asyncio.to_thread(run)
        await until_dead(int(trace.read_text()))


async def test_a_cancelled_start_leaves_no_process(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    trace = tmp_path / "pid"
    platform.add_faults(FaultRule("command_session_start", nth=1, stall=30))
    opening = asyncio.create_task(client.open_process(box.id, f"echo $$ > {trace}; exec sleep 60"))
    pid = int(await until_written(trace))
    began = time.monotonic()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert time.monotonic() - began < 0.5
    await until_dead(pid)


async def test_a_cancelled_command_is_killed_in_the_background(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    trace = tmp_path / "pid"
    work = asyncio.create_task(
        client.execute_command(box.id, f"echo $$ > {trace}; sleep 60 & wait")
    )
    pid = int(await until_written(trace))
    began = time.monotonic()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert time.monotonic() - began < 0.5
    await until_dead(pid)


async def test_a_deleted_sandbox_is_named_as_the_cause_within_a_second(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    process = await client.open_process(box.id, "echo before; sleep 60")
    await asyncio.sleep(0.2)
    waiting = asyncio.create_task(process.wait())
    writing = asyncio.create_task(process.write_stdin(b"x" * 1_000_000))
    await asyncio.sleep(0.1)
    await client.delete(box.id)
    began = time.monotonic()
    for work in (waiting, writing):
        with pytest.raises(SandboxNotRunningError, match="TERMINATED") as caught:
            await work
        assert caught.value.command == "echo before; sleep 60"
    assert time.monotonic() - began < 1
    # What had arrived is still there.
    assert await process.stdout.__anext__() == b"before\n"
    for _ in range(2):
        with pytest.raises(SandboxNotRunningError):
            await process.stdout.__anext__()
    with pytest.raises(SandboxNotRunningError):
        await process.write_stdin(b"x")
    await process.kill()
    await process.aclose()


async def test_a_lifetime_that_ends_is_named_as_the_cause(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client, timeout_minutes=1)
    async with await client.open_process(box.id, "sleep 60") as process:
        await platform.advance(61)
        with pytest.raises(SandboxTimeoutError):
            await asyncio.wait_for(process.wait(), 1)


async def test_a_sandbox_that_does_not_run_starts_no_process(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    await client.delete(box.id)
    for sandbox_id in (box.id, "sbx_nobody"):
        with pytest.raises(SandboxNotRunningError):
            await client.open_process(sandbox_id, "true")
        with pytest.raises(SandboxNotRunningError):
            await client.attach_process(sandbox_id, str(uuid.uuid4()))


async def test_a_closed_client_lets_go_of_its_processes(
    platform: LocalPlatform, running: Running
) -> None:
    async with AsyncSandboxClient() as other:
        box = await running(other)
        async with AsyncSandboxClient() as client:
            process = await client.open_process(box.id, f"echo early; {ECHO}")
            await until(process.stdout, b"early")
            waiting = asyncio.create_task(process.wait())
            await asyncio.sleep(0.05)
        with pytest.raises(APIError, match="the client was closed"):
            await waiting
        with pytest.raises(APIError, match="the client was closed"):
            await process.write_stdin(b"x")
        await process.aclose()
        async with await other.attach_process(box.id, process.session_uuid) as again:
            assert again.pid == process.pid
            await again.write_stdin(b"word\n")
            assert await until(again.stdout, b"word") == b"got word\n"
            await again.detach()
            await again.detach()
        async with await other.attach_process(box.id, process.session_uuid.upper()) as again:
            assert again.pid == process.pid
            await again.kill()
            assert await again.wait() == 137


async def test_a_process_that_is_forgotten_says_so_and_goes_on(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    processes = [await client.open_process(box.id, "sleep 60")]
    session_uuid, pid = processes[0].session_uuid, processes[0].pid
    with pytest.warns(ResourceWarning, match=f"process {pid} .* was not closed"):
        processes.clear()
    gc.collect()
    await asyncio.sleep(0.05)
    assert is_alive(pid)
    async with await client.attach_process(box.id, session_uuid) as again:
        assert again.pid == pid


async def test_a_hundred_and_fifty_processes_hold_no_command_up(
    client: AsyncSandboxClient, running: Running
) -> None:
    boxes = await asyncio.gather(*(running(client) for _ in range(3)))
    processes = await asyncio.gather(
        *(client.open_process(boxes[number % 3].id, ECHO) for number in range(150))
    )
    began = time.monotonic()
    assert (await client.execute_command(boxes[0].id, "echo on")).stdout == "on\n"
    assert time.monotonic() - began < 1
    began = time.monotonic()
    await processes[77].write_stdin(b"word\n")
    assert await until(processes[77].stdout, b"\n") == b"got word\n"
    assert time.monotonic() - began < 1
    await asyncio.gather(*(process.kill() for process in processes))
    assert {await process.wait() for process in processes} == {137}
    await asyncio.gather(*(process.aclose() for process in processes))
