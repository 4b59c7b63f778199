"""Live processes: input, output, signals, and their ends."""

from __future__ import annotations

import asyncio
import gc
import os
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prime_sandboxes.process_session
from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    AsyncSandboxProcess,
    Gap,
    ProcessInfo,
    SandboxNotRunningError,
    SandboxTimeoutError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(60)

ECHO = 'while read -r line; do echo "got $line"; done'


async def rest(output: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in output])


async def until(output: AsyncIterator[bytes], text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += await asyncio.wait_for(output.__anext__(), 10)
    return seen


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def until_dead(pid: int) -> None:
    deadline = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        await asyncio.sleep(0.01)


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def until_written(path: Path) -> str:
    deadline = time.monotonic() + 10
    while not (text := text_of(path)).endswith("\n"):
        assert time.monotonic() < deadline, f"nothing in {path}"
        await asyncio.sleep(0.01)
    return text


async def test_a_process_reads_writes_and_ends(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    process = await client.open_process(
        box.id, 'read -r line; echo "$line $A"; pwd; echo bad >&2; exit 7', "/", {"A": "env"}
    )
    assert isinstance(process, AsyncSandboxProcess)
    assert process.pid > 0
    assert process.sandbox_id == box.id
    await process.write_stdin(b"hello\n")
    assert await rest(process.stdout) == b"hello env\n/\n"
    assert await rest(process.stderr) == b"bad\n"
    assert await process.wait() == 7
    assert (process.returncode, process.reconnects) == (7, 0)
    assert process.stdout.gaps == process.stderr.gaps == ()
    await process.aclose()


async def test_output_arrives_while_the_process_runs_on_each_stream_by_itself(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    async with await client.open_process(box.id, f"echo err >&2; {ECHO}") as process:
        assert await until(process.stderr, b"err\n") == b"err\n"
        for word in (b"one", b"two"):
            await process.write_stdin(word + b"\n")
            assert await until(process.stdout, word) == b"got " + word + b"\n"
    assert process.returncode == 143


async def test_signals_reach_the_process(client: AsyncSandboxClient, running: Running) -> None:
    box = await running(client)
    async with await client.open_process(
        box.id, "trap 'echo term; exit 9' TERM; echo on; while :; do sleep 0.05; done"
    ) as process:
        await until(process.stdout, b"on")
        await process.terminate()
        assert await process.wait() == 9
        assert await rest(process.stdout) == b"term\n"
        await process.terminate()
        await process.kill()
    async with await client.open_process(box.id, "trap '' TERM; sleep 60 & wait") as process:
        await process.kill()
        assert await process.wait() == 137


async def test_a_wait_has_a_limit_where_one_is_given(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    async with await client.open_process(box.id, "sleep 60") as process:
        with pytest.raises(TimeoutError, match=r"after 0\.1 s"):
            await process.wait(timeout=0.1)
        assert process.returncode is None


async def test_input_of_megabytes_arrives_whole_and_in_order(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    data = os.urandom(3_500_000)
    async with await client.open_process(box.id, "head -c 3500003") as process:
        reading = asyncio.create_task(rest(process.stdout))
        await asyncio.gather(process.write_stdin(data), process.write_stdin(b"end"))
        assert await reading == data + b"end"
        assert await process.wait() == 0


async def test_writing_to_a_process_that_has_ended_is_a_broken_pipe(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    async with await client.open_process(box.id, "exit 4") as process:
        await process.wait()
        before = platform.ledger()["requests"].get("command_session_send_input", 0)
        with pytest.raises(BrokenPipeError, match="exit code 4"):
            await process.write_stdin(b"x")
        assert platform.ledger()["requests"].get("command_session_send_input", 0) == before
    async with await client.open_process(box.id, "exec <&-; echo on; sleep 60") as process:
        await until(process.stdout, b"on")
        with pytest.raises(BrokenPipeError, match="no open input"):
            await process.write_stdin(b"x")


async def test_a_write_that_waits_ends_with_the_process(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    async with await client.open_process(box.id, "sleep 60") as process:
        writing = asyncio.create_task(process.write_stdin(b"x" * 1_000_000))
        await asyncio.sleep(0.2)
        assert not writing.done()
        await process.kill()
        with pytest.raises(BrokenPipeError):
            await asyncio.wait_for(writing, 2)


async def test_a_write_and_a_signal_whose_answers_are_lost_count_once(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    for operation in ("command_session_send_input", "command_session_send_signal"):
        platform.add_faults(FaultRule(operation, nth=1, reset="after_commit"))
    command = f"trap 'echo term' TERM; {ECHO}"
    async with await client.open_process(box.id, command) as process:
        await process.write_stdin(b"once\n")
        await process.write_stdin(b"last\n")
        assert await until(process.stdout, b"last") == b"got once\ngot last\n"
        await process.terminate()
        await until(process.stdout, b"term\n")
        await process.write_stdin(b"end\n")
        assert await until(process.stdout, b"end") == b"got end\n"
        await process.kill()
    assert platform.ledger()["requests"]["command_session_send_input"] == 4


async def test_output_that_nobody_reads_does_not_hold_the_exit_code(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    command = "head -c 30000000 /dev/zero; head -c 20000000 /dev/zero >&2; echo end; exit 5"
    async with await client.open_process(box.id, command, output_buffer=100_000) as process:
        assert await process.wait(timeout=20) == 5
        left = await rest(process.stdout)
        assert left.endswith(b"\0end\n")
        assert len(left) <= 100_000
        (gap,) = process.stdout.gaps
        assert gap == Gap(0, 30_000_004 - len(left))
        assert process.stderr.gaps


async def test_a_stream_that_is_read_loses_nothing_beside_one_that_is_not(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    command = "for i in 1 2 3 4 5; do head -c 2000000 /dev/zero | tee /dev/stderr; done"
    async with await client.open_process(box.id, command, output_buffer=50_000) as process:
        size = 0
        async for piece in process.stdout:
            size += len(piece)
            await asyncio.sleep(0.002)  # slower than the process
        assert await process.wait() == 0
        assert (size, process.stdout.gaps) == (10_000_000, ())
        assert process.stderr.gaps


async def test_with_a_spill_folder_nothing_is_lost(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    command = "seq 1 1000000; seq 1 300000 >&2; exit 5"
    folder = tmp_path / "spill"
    folder.mkdir()
    async with await client.open_process(
        box.id, command, output_buffer=100_000, spill_folder=folder
    ) as process:
        assert await process.wait(timeout=20) == 5
        text = await rest(process.stdout)
        assert text == b"".join(b"%d\n" % number for number in range(1, 1_000_001))
        assert (await rest(process.stderr)).endswith(b"\n300000\n")
        assert process.stdout.gaps == process.stderr.gaps == ()
    assert os.listdir(folder) == []


async def test_text_is_whole_however_it_is_cut(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    text = "grüße 🍇\nzweite — Zeile\n\nohne Ende"
    pieces = "; ".join(rf"printf '\x{byte:02x}'; sleep 0.01" for byte in text.encode())
    async with await client.open_process(box.id, pieces) as process:
        assert "".join([piece async for piece in process.stdout.text()]) == text
    async with await client.open_process(box.id, pieces) as process:
        assert [line async for line in process.stdout.lines()] == text.split("\n")
    async with await client.open_process(box.id, r"printf 'a\xffb\n\xc3'") as process:
        assert [line async for line in process.stdout.lines()] == ["a\ufffdb", "\ufffd"]


async def test_twenty_mebibytes_that_are_not_utf_8_are_right(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    block = bytes(range(0x80, 0x100)) * 1024
    program = "import sys; sys.stdout.buffer.write(bytes(range(128, 256)) * 1024 * 160)"
    async with await client.open_process(box.id, f'python -c "{program}"') as process:
        assert await rest(process.stdout) == block * 160
        assert await process.wait() == 0
    result = await client.execute_command(box.id, f'python -c "{program}"')
    assert result.stdout == "\ufffd" * (20 * 1024 * 1024)


async def test_five_million_short_lines_are_right(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    began = time.monotonic()
    async with await client.open_process(box.id, "seq 1 5000000") as process:
        number = 0
        async for line in process.stdout.lines():
            number += 1
            if number % 100_000 == 0:
                assert line == str(number)
        assert number == 5_000_000
        assert process.stdout.gaps == ()
    result = await client.execute_command(box.id, "seq 1 5000000")
    assert result.stdout.count("\n") == 5_000_000
    assert result.stdout.endswith("\n5000000\n")
    assert time.monotonic() - began < 30


async def test_a_terminal_shows_everything_on_one_stream(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    command = "stty size; echo err >&2; trap 'stty size' WINCH; while read -r l; do echo [$l]; done"
    async with await client.open_process(box.id, command, terminal=(100, 30)) as process:
        shown = await until(process.stdout, b"err")
        assert b"30 100\r\n" in shown
        await process.resize_terminal(120, 40)
        await process.write_stdin(b"word\n")
        await until(process.stdout, b"40 120")
    async with await client.open_process(box.id, "sleep 60") as process:
        with pytest.raises(APIError, match="no terminal"):
            await process.resize_terminal(80, 25)


async def test_the_processes_of_a_sandbox_are_listed(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    assert await client.list_processes(box.id) == []
    async with await client.open_process(box.id, "sleep 60", "/", {"A": "1"}) as process:
        assert await client.list_processes(box.id) == [
            ProcessInfo(
                pid=process.pid,
                session_uuid=process.session_uuid,
                command=["/bin/bash", "-c", "sleep 60"],
                env={"A": "1"},
                working_dir="/",
            )
        ]
    assert await client.list_processes(box.id) == []


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


async def test_what_the_sandbox_lacks_is_an_error_at_once(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    for arguments, reason in (
        ({"working_dir": "/no/such/place"}, "/no/such/place"),
        ({"user": "nobody-of-that-name"}, "nobody-of-that-name"),
    ):
        began = time.monotonic()
        with pytest.raises(APIError, match=reason) as caught:
            await client.open_process(box.id, "pwd", **arguments)  # type: ignore[arg-type]
        assert caught.value.code == "invalid_argument"
        assert time.monotonic() - began < 0.5
    assert platform.ledger()["requests"]["command_session_start"] == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"command": " "}, "command is empty"),
        ({"command": "pwd", "working_dir": ""}, "working_dir"),
        ({"command": "pwd", "env": {"A=B": "x"}}, "env"),
        ({"command": "pwd", "user": ""}, "user"),
        ({"command": "pwd", "terminal": (0, 5)}, "columns of terminal"),
        ({"command": "pwd", "output_buffer": 0}, "output_buffer"),
        ({"command": "pwd", "spill_folder": "/no/such"}, "spill_folder"),
    ],
)
async def test_an_impossible_process_is_refused_before_sending(
    client: AsyncSandboxClient, platform: LocalPlatform, arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        await client.open_process("sbx_1", **arguments)
    with pytest.raises(ValueError, match="uuid"):
        await client.attach_process("sbx_1", "mine")
    assert platform.ledger()["requests"] == {}


async def test_wrong_types_are_refused(client: AsyncSandboxClient, running: Running) -> None:
    box = await running(client)
    with pytest.raises(TypeError, match="output_buffer"):
        await client.open_process(box.id, "true", output_buffer=1.5)  # type: ignore[arg-type]
    async with await client.open_process(box.id, "cat") as process:
        with pytest.raises(TypeError, match="bytes"):
            await process.write_stdin("text")  # type: ignore[arg-type]


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
