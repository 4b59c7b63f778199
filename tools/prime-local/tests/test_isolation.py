"""Hostile programs: what a sandbox must not reach, in the modes that promise it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import socket
import sys
import tempfile
import uuid
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import PlatformProcess

if TYPE_CHECKING:
    from conftest import PlatformOfMode, RawClient


@pytest.fixture(params=["full", "bwrap"])
def platform(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode
) -> Iterator[PlatformProcess]:
    server = platform_of_mode(request.param)
    yield server
    server.reset()


@pytest.fixture
async def client(platform: PlatformProcess, helpers: Any) -> AsyncIterator[RawClient]:
    async with helpers.client_of(platform) as client:
        yield client


async def test_homes_and_temporary_files_of_the_machine_are_not_there(
    client: RawClient, tmp_path: Path
) -> None:
    secret = f"secret-{uuid.uuid4().hex}"
    with ExitStack() as stack:
        files = []
        for place in (tmp_path, Path.home(), Path("/var/tmp"), Path("/dev/shm")):
            files.append(place / secret)
            files[-1].write_text(secret)
            stack.callback(files[-1].unlink)
        box = await client.running()
        read = "; ".join(f"cat {file}" for file in files)
        result = await client.run(box, f"{read}; ls -A /home /sys /tmp")
        assert secret not in result.stdout
        assert result.stdout.split() == ["/home:", "/sys:", "/tmp:"]
        assert result.stderr.count("No such file") == len(files)


async def test_files_that_only_root_may_read_are_not_there(client: RawClient) -> None:
    box = await client.running()
    result = await client.run(box, "cat /etc/shadow /etc/gshadow; ls /etc/ssl/private/*")
    assert result.stdout == ""
    # What every account may read is there, as in any container.
    assert (await client.run(box, "cat /etc/passwd")).stdout.startswith("root:")


async def test_folder_and_records_of_the_platform_are_not_there(
    platform: PlatformProcess, helpers: Any
) -> None:
    # Sandboxes see /opt, so a data directory in it must be covered by itself.
    shown = Path("/opt") if os.access("/opt", os.W_OK) else Path("/var/tmp")
    data = Path(tempfile.mkdtemp(dir=shown))
    try:
        with PlatformProcess(["--data-dir", str(data)], isolation=platform.isolation) as own:
            async with helpers.client_of(own) as client:
                box = await client.running()
                assert (data / "platform.sqlite3").exists()
                result = await client.run(box, f"ls -A {data}; ls -AR /run | grep json")
                assert result.stdout == ""
                kept = "-name 'platform.sqlite3*' -o -name 'traces.sqlite3*'"
                script = f"find / {kept} -o -name 'prime-local-*'"
                assert (await client.run(box, script)).stdout == ""
    finally:
        shutil.rmtree(data)


async def test_sandboxes_do_not_see_each_others_files_and_processes(client: RawClient) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    one, other = await client.running(), await client.running()
    hide = f"echo x | tee /tmp/{mark} ~/{mark} {mark} /dev/shm/{mark}; exec -a {mark} sleep 60"
    running = asyncio.create_task(client.run(one, hide))
    await _until_seen(client, one, mark)
    script = f"ls /tmp ~ . /dev/shm; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; kill -9 {2**15}"
    result = await client.run(other, script)
    assert mark not in result.stdout
    assert one["id"] not in result.stdout
    assert not running.done()
    await client.call("DELETE", f"/api/v1/sandbox/{one['id']}")
    await running


async def _until_seen(client: RawClient, box: dict[str, Any], mark: str) -> None:
    script = f"until cat /proc/*/cmdline | tr '\\0' '\\n' | grep -q ^{mark}; do :; done"
    assert (await client.run(box, script, timeout_ms=10_000)).exit_code == 0


async def test_key_and_environment_of_the_platform_are_not_there(
    client: RawClient, platform: PlatformProcess
) -> None:
    box = await client.running()
    result = await client.run(
        box, "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; ls -d /proc/[0-9]*"
    )
    assert platform.api_key not in result.stdout
    assert f"/proc/{platform.pid}\n" not in result.stdout
    assert len(result.stdout.split("/proc/")) < 10


async def test_network_is_a_loopback_of_its_own(
    client: RawClient, platform: PlatformProcess, tmp_path: Path
) -> None:
    port = platform.url.rpartition(":")[2]
    with ExitStack() as stack:
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind(str(tmp_path / "socket"))
        named.listen()
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{tmp_path}")
        abstract.listen()
        box = await client.running()
        script = f"""
import socket
def reaches(address, family=socket.AF_INET):
    with socket.socket(family) as one:
        one.settimeout(2)
        try:
            one.connect(address)
            return True
        except OSError:
            return False
print(reaches(("127.0.0.1", {port})), reaches(("{_own_address()}", {port})))
print(reaches(("1.1.1.1", 53)), reaches(("8.8.8.8", 443)))
print(reaches("{tmp_path}/socket", socket.AF_UNIX), reaches("\\0{tmp_path}", socket.AF_UNIX))
server = socket.create_server(("127.0.0.1", 0))
print(reaches(server.getsockname()))
print([name for _, name in socket.if_nameindex()])
"""
        result = await client.run(box, "python - <<'END'\n" + script + "END")
    assert result.stdout.splitlines() == ["False False"] * 3 + ["True", "['lo']"], result.stderr


def _own_address() -> str:
    """Return an address of this machine that is not its loopback's, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.2"
        address: str = probe.getsockname()[0]
        return address


POWERS = """
grep -h ^Cap /proc/1/status /proc/self/status | sort -u
mount -t tmpfs none /mnt || mount -t tmpfs none /tmp || mount --bind /usr /tmp
mknod /tmp/disk b 254 0
chroot / true
chown 1 /tmp
unshare --user true
unshare --mount true
hostname other
kill -9 1
date -s 2001-01-01
"""


async def test_root_in_it_has_no_power(client: RawClient) -> None:
    box = await client.running()
    result = await client.run(box, POWERS + "nice -n -5 true; id -u")
    capabilities = [line.split() for line in result.stdout.splitlines() if "Cap" in line]
    assert len(capabilities) == 5
    assert {value for _, value in capabilities} == {"0" * 16}
    for program in ("mount", "mknod", "chroot", "chown", "unshare", "hostname", "date", "nice"):
        assert f"{program}: " in result.stderr
    assert result.stdout.endswith("\n0\n")
    assert (await client.run(box, "echo alive")).stdout == "alive\n"


async def test_settings_of_the_kernel_cannot_be_written(client: RawClient) -> None:
    before = _read("/proc/sys/kernel/core_pattern")
    box = await client.running()
    script = """
for file in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sysrq-trigger \\
        /proc/sys/user/max_user_namespaces /proc/self/oom_score_adj; do
    { echo h > $file; } 2>/dev/null && echo wrote $file
done
find / -path /proc -prune -o -name 'cgroup.procs' -print
ls -A /sys
"""
    assert (await client.run(box, script)).stdout == ""
    assert _read("/proc/sys/kernel/core_pattern") == before


async def test_programs_and_interpreter_of_the_machine_cannot_be_changed(
    client: RawClient,
) -> None:
    box = await client.running()
    script = """
import os, sys
for path in (sys.executable, os.path.realpath(sys.executable), os.__file__):
    try:
        open(path, "ab").close()
        print("opened", path)
    except OSError:
        pass
"""
    result = await client.run(box, "python - <<'END'\n" + script + "END")
    opened = [line.split()[1] for line in result.stdout.splitlines()]
    for path in opened:
        # A private copy at most.
        assert (await client.run(box, f"echo x >> {path}")).exit_code == 0
        assert not _read(path).endswith(b"x\n")
    await client.run(box, "echo hacked > /usr/bin/true; rm -rf /usr/lib/os-release")
    assert _read("/usr/bin/true").startswith(b"\x7fELF")
    assert _read("/usr/lib/os-release")


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


PEEPING = """
import os, time
seen, opened = 0, []
end = time.monotonic() + 4
while time.monotonic() < end:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"isolation" + b".launcher" not in file.read():
                    continue
        except OSError:
            continue
        seen += 1
        for name in ("exe", *(f"fd/{number}" for number in range(32))):
            path = f"/proc/{pid}/{name}"
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                target = os.readlink(path)
            except OSError:
                continue
            # It may have become the command in between, which is the sandbox's own.
            if not target.startswith(("/usr/", "/etc/", "/dev/null", "pipe:")):
                opened.append(target)
print(seen, opened)
"""


async def test_starting_command_cannot_be_looked_into(client: RawClient) -> None:
    """Between joining a sandbox and executing, a process still has the platform's files open."""
    box = await client.running()
    peeping = asyncio.create_task(client.run(box, "python - <<'END'\n" + PEEPING + "END"))
    while not peeping.done():
        await asyncio.gather(*(client.run(box, "true") for _ in range(4)))
    seen, _, opened = (await peeping).stdout.strip().partition(" ")
    assert int(seen) > 0, "no command was caught at its start: the test shows nothing"
    assert opened == "[]"


async def test_shell_that_a_sandbox_replaced_gets_no_power(
    client: RawClient, platform: PlatformProcess
) -> None:
    box = await client.running()
    shell = "#!/bin/sh\\ngrep CapEff /proc/self/status\\n"
    script = f"rm /bin/bash && printf '{shell}' > /bin/bash && chmod +x /bin/bash"
    replaced = (await client.run(box, script)).exit_code == 0
    assert replaced == (platform.isolation == "full")
    said = (await client.run(box, "true")).stdout
    assert said == ("CapEff:\t0000000000000000\n" if replaced else "")


FINDING_A_KEY = """
import ctypes, platform
search = {"x86_64": 250, "aarch64": 219}[platform.machine()]
# Operation 10 is a search, -3 the session keyring.
print(ctypes.CDLL(None).syscall(search, 10, -3, b"user", b"%s", 0))
"""


@pytest.mark.skipif(machine() not in ("x86_64", "aarch64"), reason="knows no other's numbers")
async def test_kernels_keys_of_the_platform_are_not_there(
    platform: PlatformProcess, helpers: Any
) -> None:
    add = {"x86_64": 248, "aarch64": 217}[machine()]
    mark = f"key-{uuid.uuid4().hex}"
    key = ctypes.CDLL(None).syscall(add, b"user", mark.encode(), b"secret", 6, -3)
    if key == -1:
        pytest.skip("the kernel keeps no keys for this account")
    script = FINDING_A_KEY % mark
    with PlatformProcess(isolation=platform.isolation) as own:
        async with helpers.client_of(own) as client:
            box = await client.running()
            result = await client.run(box, "python - <<'END'\n" + script + "END")
    here = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=PIPE)
    assert int((await here.communicate())[0]) == key
    assert result.stdout == "-1\n"


async def test_killing_every_process_in_it_does_not_end_it(client: RawClient) -> None:
    box = await client.running()
    await client.run(box, "kill -9 -1; for n in $(seq 64); do kill -$n 1; done")
    assert (await client.run(box, "echo alive")).stdout == "alive\n"
    assert (await client.get(box))["status"] == "RUNNING"
