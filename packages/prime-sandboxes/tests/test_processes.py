"""Live processes: input, output, signals, and their ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live_processes import ECHO, rest, until

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    AsyncSandboxProcess,
    Gap,
    ProcessInfo,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(60)


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


async def test_streamed_input_arrives_whole_and_in_order(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    pieces = [os.urandom(1_500_000), b"", b"x", os.urandom(500_000)]

    async def source() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async with await client.open_process(box.id, "head -c 2000004") as process:
        reading = asyncio.create_task(rest(process.stdout))
        streaming = asyncio.create_task(process.write_stdin_from(source()))
        await asyncio.sleep(0)
        await process.write_stdin(b"end")
        await streaming
        assert await reading == b"".join(pieces) + b"end"
    requests = platform.ledger()["requests"]
    assert requests["command_session_stream_input"] == 1


async def test_a_source_of_input_that_fails_or_outlives_the_process_ends_the_write(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)

    async def failing() -> AsyncIterator[bytes]:
        yield b"x"
        raise ZeroDivisionError

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 10_000
            await asyncio.sleep(0.01)

    async with await client.open_process(box.id, "cat > /dev/null; exit 1") as process:
        with pytest.raises(ZeroDivisionError):
            await process.write_stdin_from(failing())
        writing = asyncio.create_task(process.write_stdin_from(endless()))
        await asyncio.sleep(0.2)
        assert not writing.done()
        await process.kill()
        with pytest.raises(BrokenPipeError):
            await asyncio.wait_for(writing, 3)
    async with await client.open_process(box.id, "exec <&-; echo on; sleep 60") as process:
        await until(process.stdout, b"on")
        with pytest.raises(BrokenPipeError, match="no open input"):
            await asyncio.wait_for(process.write_stdin_from(endless()), 5)


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


async def test_what_follows_the_last_line_taken_is_there_for_whoever_reads_on(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    async with await client.open_process(box.id, "seq 1 1000") as process:
        taken: list[str] = []
        async for line in process.stdout.lines():
            taken.append(line)
            if line == "10":
                break
        async for line in process.stdout.lines():
            taken.append(line)
            if line == "20":
                break
        rest = "".join([piece async for piece in process.stdout.text()])
        assert [*taken, *rest.split()] == [str(number) for number in range(1, 1001)]
        assert process.stdout.gaps == ()


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
    result = await client.execute_command(box.id, "yes ab | head -n 5000000")
    assert result.stdout == "ab\n" * 5_000_000
    assert time.monotonic() - began < 30


async def test_a_terminal_shows_everything_on_one_stream(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    command = "trap 'stty size' WINCH; stty size; echo err >&2; while read -r l; do echo [$l]; done"
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
