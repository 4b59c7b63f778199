"""The command line, in real subprocesses with real signals."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from prime_local import PlatformProcess

PRIME_LOCAL = [sys.executable, "-m", "prime_local"]


@contextmanager
def _started(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*PRIME_LOCAL, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _wait_for(path: Path) -> str:
    deadline = time.monotonic() + 15
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"nothing in {path}"
        time.sleep(0.01)
    return path.read_text().strip()


def _sleeper(folder: Path) -> dict[str, object]:
    script = f"setsid sleep 60 & echo $! > {folder}/child; echo $$ > {folder}/main; wait"
    return {
        "name": "x",
        "docker_image": "python",
        "start_command": {"executable": "/bin/bash", "args": ["-c", script]},
    }


def _post(url: str, key: str, body: object) -> None:
    request = urllib.request.Request(
        url + "/api/v1/sandbox",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(request, timeout=10).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_serve_prints_one_ready_line_and_ends_every_process_on_a_signal(
    tmp_path: Path, helpers: Any, number: signal.Signals
) -> None:
    options = ["--isolation", "process", "--data-dir", str(tmp_path / "data")]
    with _started("serve", "--port", "0", *options) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["event"] == "ready"
        assert ready["pid"] == process.pid
        assert ready["isolation"] == "process"
        assert ready["env"] == {
            "PRIME_BASE_URL": ready["url"],
            "PRIME_API_KEY": ready["api_key"],
            "PRIME_TRACES_URL": ready["url"] + "/traces",
            "PRIME_INFERENCE_URL": ready["url"] + "/inference/api/v1",
        }
        _post(ready["url"], ready["api_key"], _sleeper(tmp_path))
        pids = [int(_wait_for(tmp_path / name)) for name in ("main", "child")]
        assert all(helpers.process_exists(pid) for pid in pids)
        started = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=5)
        assert process.returncode == 0
        assert time.monotonic() - started < 5
    assert out == ""
    assert "SIMULATION" in err
    assert "NOTHING isolates" in err
    assert [pid for pid in pids if helpers.process_exists(pid)] == []
    names = sorted(path.name for path in (tmp_path / "data").iterdir())
    assert names == ["platform.sqlite3", "traces.sqlite3"]


def test_serve_does_not_wait_for_open_streams() -> None:
    with _started("serve") as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        _post(ready["url"], ready["api_key"], {"name": "x", "docker_image": "python"})
        address = urllib.parse.urlsplit(ready["url"])
        with socket.create_connection((address.hostname, address.port), timeout=5) as idle:
            idle.sendall(b"POST /api/v1/sandbox HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
            time.sleep(0.1)
            started = time.monotonic()
            process.terminate()
            assert process.wait(5) == 0
            assert time.monotonic() - started < 4


def test_seed_makes_the_key_repeatable() -> None:
    keys = set()
    for _ in range(2):
        with PlatformProcess(["--seed", "3"]) as server:
            keys.add(server.api_key)
    assert len(keys) == 1


def test_taken_port_is_a_plain_error() -> None:
    with PlatformProcess() as server:
        port = server.url.rpartition(":")[2]
        done = subprocess.run(
            [*PRIME_LOCAL, "serve", "--port", port], capture_output=True, text=True, timeout=20
        )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "cannot start" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_gives_the_command_its_environment_and_returns_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PRIME_TEAM_ID", "PRIME_CONTEXT", "PRIME_API_BASE_URL", "PRIME_API_KEY"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    script = (
        "import json, os, sys, urllib.request\n"
        "print(json.dumps(dict(os.environ)))\n"
        "url = os.environ['PRIME_BASE_URL'] + '/_local/ledger'\n"
        "urllib.request.urlopen(url, timeout=5).close()\n"
        "sys.exit(7)\n"
    )
    done = subprocess.run(
        [*PRIME_LOCAL, "run", "--no-limits", "--", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 7, done.stderr
    environment = json.loads(done.stdout)
    assert environment["PRIME_BASE_URL"].startswith("http://127.0.0.1:")
    assert environment["PRIME_API_KEY"] not in ("mine", "")
    assert environment["HOME"] == os.environ["HOME"]
    assert not {"PRIME_TEAM_ID", "PRIME_CONTEXT", "PRIME_API_BASE_URL"} & set(environment)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["bash", "-c", "kill -KILL $$"], 137),
        (["bash", "-c", "exit 0"], 0),
        (["bash", "-c", "exit $#", "--", "--", "x"], 2),
        (["no-such-program"], 127),
        (["/dev/null"], 126),
    ],
)
def test_exit_code_of_run(command: list[str], code: int) -> None:
    done = subprocess.run([*PRIME_LOCAL, "run", "--", *command], capture_output=True, timeout=30)
    assert done.returncode == code


@pytest.mark.parametrize("arguments", [["run"], ["run", "--"], ["serve", "--", "x"], []])
def test_misuse_is_explained(arguments: list[str]) -> None:
    done = subprocess.run([*PRIME_LOCAL, *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "usage: prime-local" in done.stderr


CLEANING_UP = """
import os, signal, sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
seen = []
def on_signal(number, frame):
    seen.append(number)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, on_signal)
print("ready", flush=True)
deadline = time.monotonic() + 20
while not seen and time.monotonic() < deadline:
    time.sleep(0.01)
time.sleep(0.3)
opener.open(os.environ["PRIME_BASE_URL"] + "/_local/ledger", timeout=5).close()
print("signals", len(seen), flush=True)
sys.exit(9)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whole_group", [False, True])
def test_run_passes_a_signal_on_once_and_outlives_the_command(
    number: signal.Signals, whole_group: bool
) -> None:
    arguments = ["run", "--", sys.executable, "-c", CLEANING_UP]
    with _started(*arguments, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (os.killpg if whole_group else os.kill)(process.pid, number)
        out, err = process.communicate(timeout=15)
    assert out == "signals 1\n", err
    assert process.returncode == 9


def test_ctrl_c_in_a_terminal_reaches_the_command_once() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        command = [*PRIME_LOCAL, "run", "--", sys.executable, "-c", CLEANING_UP]
        os.execv(command[0], command)
    screen = b""
    try:
        while b"ready" not in screen:
            screen += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        while b"\n" not in screen.partition(b"signals")[2]:
            screen += os.read(terminal, 4096)
    finally:
        status = _wait(pid)
        os.close(terminal)
    assert b"signals 1" in screen, screen
    assert os.waitstatus_to_exitcode(status) == 9


def _wait(pid: int) -> int:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the command did not end")


def test_run_leaves_no_sandbox_process(tmp_path: Path, helpers: Any) -> None:
    body = json.dumps(_sleeper(tmp_path))
    script = (
        "import os, pathlib, time, urllib.request\n"
        f"request = urllib.request.Request(os.environ['PRIME_BASE_URL'] + '/api/v1/sandbox',"
        f" data={body!r}.encode(),"
        " headers={'Authorization': 'Bearer ' + os.environ['PRIME_API_KEY']})\n"
        "urllib.request.urlopen(request, timeout=10).close()\n"
        f"while not pathlib.Path({str(tmp_path / 'main')!r}).exists(): time.sleep(0.01)\n"
    )
    options = ["--isolation", "process", "--", sys.executable, "-c", script]
    command = [*PRIME_LOCAL, "run", *options]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    for name in ("main", "child"):
        assert not helpers.process_exists(int(_wait_for(tmp_path / name)))


def test_platform_process_has_the_controls_of_an_embedded_one(
    prime_platform_server: PlatformProcess,
) -> None:
    server = prime_platform_server
    server.reset()
    _post(server.url, server.api_key, {"name": "x", "docker_image": "python"})
    assert server.ledger()["sandboxes"]["live"] == 1
    server.advance(3601)
    assert server.ledger()["sandboxes"]["live"] == 0
    server.outage(0.2)
    with pytest.raises(OSError, match=r"refused|reset"):
        server.ledger()
    deadline = time.monotonic() + 5
    while True:
        try:
            assert server.ledger()["sandboxes"]["created"] == 1
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_platform_process_ends_with_the_process_that_started_it(helpers: Any) -> None:
    program = (
        "import os, signal\n"
        "from prime_local import PlatformProcess\n"
        "server = PlatformProcess()\n"
        "server.__enter__()\n"
        "print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30)
    assert ended.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 15
    while helpers.process_exists(int(ended.stdout)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_platform_process_that_cannot_start_says_why() -> None:
    with (
        PlatformProcess() as server,
        pytest.raises(RuntimeError, match="cannot start"),
        PlatformProcess(["--port", server.url.rpartition(":")[2]]),
    ):
        pass


def test_importing_the_package_or_the_plugin_loads_nothing_heavy() -> None:
    script = (
        "import sys, prime_local, prime_local.pytest_plugin\n"
        "heavy = {'aiohttp', 'google.protobuf', 'jsonschema_rs'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert all(hasattr(prime_local, name) for name in prime_local.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


async def test_thousand_creates_at_once_are_quick(prime_platform_server: PlatformProcess) -> None:
    server = prime_platform_server
    server.reset()
    headers = {"Authorization": f"Bearer {server.api_key}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def create() -> int:
            body = {"name": "x", "docker_image": "python"}
            async with session.post(server.url + "/api/v1/sandbox", json=body) as response:
                return response.status

        before = _cpu_seconds(server.pid)
        statuses = await asyncio.gather(*(create() for _ in range(1000)))
    assert set(statuses) == {201}
    assert _cpu_seconds(server.pid) - before < 3
    server.reset()


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
