"""Networks between isolated sandboxes: what really gets through, seen from inside."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import PlatformProcess
from prime_local.sandboxes.isolation.leases import lease_folder

if TYPE_CHECKING:
    from conftest import PlatformOfMode, RawClient

NETWORKS = "/api/v1/sandbox/networks"
MACHINE = "198.19.255.254"
# Greets whoever connects to port $1.
SERVE = """
import os, socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
if os.fork() == 0:
    os.setsid()
    for number in range(3):
        os.close(number)
    while True:
        link, _ = server.accept()
        link.sendall(b"hello")
        link.close()
"""


in_both_modes = pytest.mark.parametrize("networked", ["full", "bwrap"], indirect=True)


@pytest.fixture
def client(networked: RawClient) -> RawClient:
    return networked


class Lan:
    """A private network of a test."""

    def __init__(self, client: RawClient, path: str) -> None:
        self.client = client
        self.path = path

    @classmethod
    async def make(cls, client: RawClient, **fields: object) -> Lan:
        answer = await client.call("POST", NETWORKS, {"name": "lan", **fields})
        return cls(client, f"{NETWORKS}/{answer.body['id']}")

    async def join(self, box: Any, *tags: str) -> None:
        path = f"{self.path}/members/{box['id']}"
        answer = await self.client.call("PUT", path, {"tags": list(tags)})
        assert answer.status == 200, answer.body
        await self.client.until_in_force(self.path, "synced")

    async def rule(self, *rules: tuple[str, str, list[int] | None]) -> None:
        body = [{"from": source, "to": target, "ports": ports} for source, target, ports in rules]
        await self.client.call("PUT", self.path + "/rules", {"rules": body})
        await self.client.until_in_force(self.path, "synced")


async def serve(client: RawClient, box: Any, *ports: int) -> None:
    for port in ports:
        result = await client.run(box, f"python -I -S -c '{SERVE}' {port}")
        assert result.exit_code == 0, result.stderr


def name_of(box: Any) -> str:
    return f"{box['id']}.sandbox.internal"


@in_both_modes
async def test_members_reach_each_other_by_name(client: RawClient) -> None:
    one, other, stranger = [await client.running() for _ in range(3)]
    await serve(client, one, 8000)
    assert await client.dial(other, name_of(one), 8000) == "gaierror"
    lan = await Lan.make(client)
    await lan.join(one)
    await lan.join(other)
    assert await client.dial(other, name_of(one), 8000) == "hello"
    assert await client.dial(other, name_of(one), 8001) == "ConnectionRefusedError"
    assert await client.dial(stranger, name_of(one), 8000) == "gaierror"
    found = await client.run(other, f"getent hosts {name_of(one)}")
    address = ip_address(found.stdout.split()[0])
    assert "198.18.0.0" <= str(address) < "198.20"
    # A member's network is the private one alone.
    assert await client.dial(other, MACHINE, 80) == "ConnectionRefusedError"


async def test_rules_are_directed_and_hold_for_ports_and_tags(
    client: RawClient,
) -> None:
    web, db = await client.running(), await client.running()
    for box in (web, db):
        await serve(client, box, 8000, 8001)
    lan = await Lan.make(client, rules=[{"from": "tag:web", "to": "tag:db", "ports": [8000]}])
    await lan.join(web, "web")
    await lan.join(db, "db")
    refused = "ConnectionRefusedError"
    began = time.monotonic()
    assert await client.dial(web, name_of(db), 8000) == "hello"
    assert await client.dial(web, name_of(db), 8001) == refused
    assert await client.dial(db, name_of(web), 8000) == refused
    assert time.monotonic() - began < 4, "a refusal comes at once"
    await lan.join(web, "db")
    await lan.join(db, "web")
    assert await client.dial(web, name_of(db), 8000) == refused
    assert await client.dial(db, name_of(web), 8000) == "hello"
    await lan.rule()
    assert await client.dial(db, name_of(web), 8000) == refused
    await lan.rule(("internet", "*", [8000]))
    assert await client.dial(db, name_of(web), 8000) == refused
    await lan.rule(("*", "*", None))
    assert await client.dial(db, name_of(web), 8001) == "hello"


async def test_networks_do_not_lead_into_each_other(client: RawClient) -> None:
    left, middle, right = [await client.running() for _ in range(3)]
    await serve(client, right, 8000)
    for pair in ((left, middle), (middle, right)):
        lan = await Lan.make(client)
        for box in pair:
            await lan.join(box)
    assert await client.dial(middle, name_of(right), 8000) == "hello"
    found = await client.run(middle, f"getent hosts {name_of(right)}")
    address = found.stdout.split()[0]
    assert await client.dial(left, name_of(right), 8000) == "gaierror"
    assert await client.dial(left, address, 8000) == "ConnectionRefusedError"


async def test_between_members_only_tcp_passes(client: RawClient) -> None:
    one, other = await client.running(), await client.running()
    lan = await Lan.make(client)
    for box in (one, other):
        await lan.join(box)
    script = """
import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.connect((sys.argv[1], 9))
link.settimeout(5)
try:
    link.send(b"x")
    link.recv(1)
except OSError as error:
    print(type(error).__name__)
"""
    result = await client.run(other, f"python -I -S -c '{script}' {name_of(one)}")
    assert result.stdout.strip() == "ConnectionRefusedError"


async def test_who_is_removed_is_cut_off_at_once(client: RawClient) -> None:
    one, other = await client.running(), await client.running()
    await serve(client, one, 8000)
    lan = await Lan.make(client)
    for box in (one, other):
        await lan.join(box)
    found = await client.run(other, f"getent hosts {name_of(one)}")
    address = found.stdout.split()[0]
    # An open connection, both ends idle until the member has gone.
    listen = 'import socket; s = socket.create_server(("0.0.0.0", 9000)); s.accept()[0].recv(9)'
    hold = f"""
import socket, time
link = socket.create_connection(("{address}", 9000))
open("/tmp/open", "w").close()
while True:
    try:
        link.send(b"x")
    except OSError as error:
        raise SystemExit(type(error).__name__)
    time.sleep(0.05)
"""
    server = asyncio.create_task(
        client.run(one, f"python -I -S -c '{listen.replace('recv(9)', 'makefile().read()')}'")
    )
    await asyncio.sleep(0.3)
    holder = asyncio.create_task(client.run(other, f"python -I -S -c '{hold}'"))
    await client.run(other, "until [ -e /tmp/open ]; do sleep 0.05; done")
    removed = await client.call("DELETE", f"{lan.path}/members/{one['id']}")
    assert removed.status == 200
    result = await asyncio.wait_for(holder, 5)
    assert result.stderr.strip() in ("ConnectionResetError", "BrokenPipeError")
    assert await client.dial(other, address, 8000) == "ConnectionRefusedError"
    assert await client.dial(other, name_of(one), 8000) == "gaierror"
    server.cancel()
    await asyncio.gather(server, return_exceptions=True)


async def test_a_sandbox_that_ends_makes_room(client: RawClient) -> None:
    one, other = await client.running(), await client.running()
    await serve(client, one, 8000)
    lan = await Lan.make(client)
    for box in (one, other):
        await lan.join(box)
    await client.call("DELETE", f"/api/v1/sandbox/{one['id']}")
    assert (await client.until_in_force(lan.path, "synced"))["members"] == [
        {"sandbox_id": other["id"], "tags": [], "synced": True}
    ]
    newcomer = await client.running()
    await serve(client, newcomer, 8000)
    await lan.join(newcomer)
    assert await client.dial(other, name_of(newcomer), 8000) == "hello"
    assert await client.dial(other, name_of(one), 8000) == "gaierror"


def link_of(platform: PlatformProcess) -> Path:
    """Return this machine's end of a platform's cable; other platforms have theirs."""
    folder = lease_folder()
    assert folder is not None
    held = {
        int(fields[5].rpartition(":")[2])
        for fields in map(str.split, Path("/proc/locks").read_text().splitlines())
        if int(fields[4]) == platform.pid
    }
    (lease,) = (path for path in folder.glob("*.json") if path.stat().st_ino in held)
    return Path("/sys/class/net", f"prime-{lease.stem[:8]}")


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
async def test_nothing_is_left_on_this_machine(
    platform_of_mode: PlatformOfMode, helpers: Any, killed: bool
) -> None:
    platform_of_mode("full")  # skips, or fails, where the mode does not work
    with PlatformProcess(["--no-limits"], isolation="full") as platform:
        link = link_of(platform)
        async with helpers.client_of(platform) as client:
            await client.running()
            assert not is_there(link), "made only when it is needed"
            await client.running(network_denylist=[])
            assert is_there(link)
            if killed:
                os.kill(platform.pid, signal.SIGKILL)
                await until_unlinked(link)
    await until_unlinked(link)


def is_there(link: Path) -> bool:
    return link.exists()


async def until_unlinked(link: Path) -> None:
    deadline = time.monotonic() + 10
    while is_there(link):
        assert time.monotonic() < deadline, link
        await asyncio.sleep(0.05)


async def ask(
    platform: PlatformProcess, box: Any, port: int, request: str = "GET /a%20b?c=d HTTP/1.0"
) -> str:
    """Return the answer of a public port; names below `.localhost` may not resolve here."""
    host = platform.public_url.format(port=port, sandbox_id=box["id"]).removeprefix("http://")
    _, _, public = host.partition(":")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(public))
    try:
        writer.write(f"{request}\r\nHost: {host}\r\nX-Mine: yes\r\n\r\n".encode())
        return (await asyncio.wait_for(reader.read(), 10)).decode()
    finally:
        writer.close()


async def test_ports_that_a_rule_exposes_are_served_outside(
    client: RawClient, platform_of_mode: PlatformOfMode
) -> None:
    platform = platform_of_mode("full")
    box, other = await client.running(), await client.running()
    await client.run(box, "cd /tmp && (python -m http.server 8080 >log 2>&1 &)")
    await client.run(box, "cd /tmp && (python -m http.server 8081 -b 127.0.0.1 >/dev/null 2>&1 &)")
    await client.run(box, "mkdir '/tmp/a b'; until curl -s localhost:8080; do sleep 0.05; done")
    lan = await Lan.make(client)
    for member in (box, other):
        await lan.join(member, "web" if member is box else "db")
    assert "404 Not Found" in await ask(platform, box, 8080), "`*` exposes nothing"
    await lan.rule(("internet", "tag:web", [8080, 8081]))
    answer = await ask(platform, box, 8080)
    assert answer.startswith("HTTP/1.0 301 ")
    assert "Location: /a%20b/?c=d" in answer, "path and query arrive as they are"
    assert "502 Bad Gateway" in await ask(platform, box, 8081), "loopback only"
    not_exposed = await ask(platform, box, 8082)
    assert not_exposed.startswith("HTTP/1.1 404 ")
    assert not_exposed.endswith("Port not exposed")
    assert await ask(platform, other, 8080) == not_exposed
    assert await ask(platform, {"id": "sbx_none"}, 8080) == not_exposed
    await client.call("DELETE", f"{lan.path}/members/{box['id']}")
    assert await ask(platform, box, 8080) == not_exposed
