"""Live processes through the sync client: from plain code, and from several threads."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_processes import ECHO

from prime_local import PlatformProcess
from prime_sandboxes import (
    APIError,
    CreateSandboxRequest,
    Gap,
    ProcessOutput,
    SandboxClient,
    SandboxNotRunningError,
    SandboxProcess,
)

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def client(
    home: Path, prime_platform_server: PlatformProcess, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SandboxClient]:
    prime_platform_server.reset()
    for name, value in prime_platform_server.env.items():
        monkeypatch.setenv(name, value)
    with SandboxClient() as client:
        yield client


@pytest.fixture
def box(client: SandboxClient) -> str:
    made = client.create(CreateSandboxRequest(name="box", docker_image="python:3.11-slim"))
    client.wait_for_creation(made.id)
    return made.id


def test_a_process_reads_writes_and_ends(client: SandboxClient, box: str) -> None:
    with client.open_process(box, f"echo err >&2; {ECHO}") as process:
        assert isinstance(process, SandboxProcess)
        assert isinstance(process.stdout, ProcessOutput)
        assert next(process.stderr) == b"err\n"
        process.write_stdin(b"one\n")
        assert next(process.stdout) == b"got one\n"
        assert process.pid == client.list_processes(box)[0].pid
        process.terminate()
        assert process.wait() == process.returncode == 143
        with pytest.raises(StopIteration):
            next(process.stdout)
        with pytest.raises(BrokenPipeError):
            process.write_stdin(b"x")
    assert repr(process).startswith("SandboxProcess(pid=")


def test_output_is_iterated_as_bytes_text_and_lines(client: SandboxClient, box: str) -> None:
    command = r"printf 'gr\xc3'; sleep 0.05; printf '\xbc\xc3\x9fe\nzwei'; exit 3"
    expected = "grüße\nzwei"
    with client.open_process(box, command) as process:
        assert b"".join(process.stdout) == expected.encode()
        assert process.wait(timeout=5) == 3
    with client.open_process(box, command) as process:
        assert "".join(process.stdout.text()) == expected
    with client.open_process(box, command) as process:
        assert list(process.stdout.lines()) == expected.split("\n")


def test_a_loop_that_is_left_does_not_hold_the_process(client: SandboxClient, box: str) -> None:
    command = "head -c 5000000 /dev/zero; exit 4"
    with client.open_process(box, command, output_buffer=10_000) as process:
        for _ in process.stdout:
            break
        assert process.wait(timeout=10) == 4
        assert process.stdout.gaps


def test_streamed_input_comes_from_a_plain_iterable(client: SandboxClient, box: str) -> None:
    with client.open_process(box, ECHO) as process:
        process.write_stdin_from(b"%d\n" % number for number in range(3))
        lines = process.stdout.lines()
        assert [next(lines) for _ in range(3)] == ["got 0", "got 1", "got 2"]


def test_one_thread_reads_while_others_write_and_wait(client: SandboxClient, box: str) -> None:
    lines: list[str] = []
    codes: list[int] = []
    with client.open_process(box, ECHO) as process:
        reading = threading.Thread(target=lambda: lines.extend(process.stdout.lines()))
        waiting = threading.Thread(target=lambda: codes.append(process.wait()))
        writing = [
            threading.Thread(target=process.write_stdin, args=(b"%d\n" % number,))
            for number in range(10)
        ]
        threads = [reading, waiting, *writing]
        for thread in threads:
            thread.start()
        for thread in writing:
            thread.join(10)
        deadline = time.monotonic() + 10
        while len(lines) < 10:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        for thread in (reading, waiting):
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)
    assert sorted(lines) == [f"got {number}" for number in range(10)]
    assert codes == [137]


def test_a_process_is_attached_to_again(client: SandboxClient, box: str) -> None:
    process = client.open_process(box, ECHO)
    process.detach()
    with pytest.raises(APIError, match="not followed"):
        process.wait()
    with client.attach_process(box, process.session_uuid) as again:
        assert again.pid == process.pid
        assert again.stdout.gaps == (Gap(0, None),)
        again.write_stdin(b"word\n")
        assert next(again.stdout) == b"got word\n"


def test_a_deleted_sandbox_ends_everything(client: SandboxClient, box: str) -> None:
    with client.open_process(box, "sleep 60") as process:
        client.delete(box)
        with pytest.raises(SandboxNotRunningError):
            process.wait(timeout=5)
        with pytest.raises(SandboxNotRunningError):
            list(process.stdout)


def test_a_process_that_is_forgotten_says_so(client: SandboxClient, box: str) -> None:
    processes = [client.open_process(box, "sleep 60")]
    with pytest.warns(ResourceWarning, match="was not closed"):
        processes.clear()
    gc.collect()


def test_a_process_is_not_pickled_but_attached_to(client: SandboxClient, box: str) -> None:
    with client.open_process(box, "sleep 60") as process:
        with pytest.raises(TypeError, match="attach_process there"):
            pickle.dumps(process)
        with pytest.raises(TypeError, match="arrives here"):
            pickle.dumps(process.stdout)


def test_a_process_is_made_by_its_client_only() -> None:
    with pytest.raises(TypeError, match=r"made by SandboxClient\.open_process"):
        SandboxProcess()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_is_told_that_the_process_is_its_parents(
    client: SandboxClient, box: str
) -> None:
    with client.open_process(box, "sleep 1; exit 5") as process:
        child = os.fork()
        if child == 0:
            try:
                process.wait()
            except RuntimeError as error:
                process.close()  # does nothing here
                os._exit(0 if "attach_process" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert process.wait() == 5
