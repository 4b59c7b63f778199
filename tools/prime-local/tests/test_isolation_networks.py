"""Networks between isolated sandboxes: what really gets through, seen from inside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
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
# Connects to $1 port $2 and prints what it reads, or the error.
DIAL = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as link:
        print(link.recv(100).decode() or "closed")
except OSError as error:
    print(type(error).__name__)
"""
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


@pytest.fixture
async def client(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode, helpers: Any
) -> AsyncIterator[RawClient]:
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("nft")):
        helpers.require_or_skip("networks need root, ip and nft")
    platform = platform_of_mode(getattr(request, "param", "full"))
    async with helpers.client_of(platform) as client:
        yield client
    platform.reset()


in_both_modes = pytest.mark.parametrize("client", ["full", "bwrap"], indirect=True)
Listen = Callable[[str], Awaitable[int]]


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Starts servers on this machine that greet and then echo; returns their ports."""
    async with contextlib.AsyncExitStack() as stack:

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(100):
                    writer.write(data)
            writer.close()

        async def start(host: str) -> int:
            server = await stack.enter_async_context(await asyncio.start_server(greet, host, 0))
            port: int = server.sockets[0].getsockname()[1]
            return port

        yield start


async def until_in_force(client: RawClient, path: str, field: str) -> Any:
    deadline = time.monotonic() + 10
    while True:
        found = (await client.call("GET", path)).body
        members = found.get("members") or ()
        if found[field] and all(member["synced"] for member in members):
            return found
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)


async def set_policy(client: RawClient, box: Any, **lists: object) -> None:
    path = f"/api/v1/sandbox/{box['id']}/egress-policy"
    answer = await client.call("PUT", path, {"allowlist": None, "denylist": None, **lists})
    assert answer.status == 200, answer.body
    await until_in_force(client, path, "applied")


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
        await until_in_force(self.client, self.path, "synced")

    async def rule(self, *rules: tuple[str, str, list[int] | None]) -> None:
        body = [{"from": source, "to": target, "ports": ports} for source, target, ports in rules]
        await self.client.call("PUT", self.path + "/rules", {"rules": body})
        await until_in_force(self.client, self.path, "synced")


async def serve(client: RawClient, box: Any, *ports: int) -> None:
    for port in ports:
        result = await client.run(box, f"python -I -S -c '{SERVE}' {port}")
        assert result.exit_code == 0, result.stderr


async def dial(client: RawClient, box: Any, host: str, port: int) -> str:
    """Return the greeting that is read there, or the name of the error."""
    result = await client.run(box, f"python -I -S -c '{DIAL}' {host} {port}")
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def own_addresses() -> set[str]:
    return {line.split()[3].partition("/")[0] for line in os.popen("ip -4 -o address")}


def name_of(box: Any) -> str:
    return f"{box['id']}.sandbox.internal"


@in_both_modes
async def test_members_reach_each_other_by_name(client: RawClient) -> None:
    one, other, stranger = [await client.running() for _ in range(3)]
    await serve(client, one, 8000)
    assert await dial(client, other, name_of(one), 8000) == "gaierror"
    lan = await Lan.make(client)
    await lan.join(one)
    await lan.join(other)
    assert await dial(client, other, name_of(one), 8000) == "hello"
    assert await dial(client, other, name_of(one), 8001) == "ConnectionRefusedError"
    assert await dial(client, stranger, name_of(one), 8000) == "gaierror"
    found = await client.run(other, f"getent hosts {name_of(one)}")
    address = ip_address(found.stdout.split()[0])
    assert "198.18.0.0" <= str(address) < "198.20"
    # A member's network is the private one alone.
    assert await dial(client, other, MACHINE, 80) == "ConnectionRefusedError"


async def test_rules_are_directed_and_hold_for_ports_and_tags(client: RawClient) -> None:
    web, db = await client.running(), await client.running()
    for box in (web, db):
        await serve(client, box, 8000, 8001)
    lan = await Lan.make(client, rules=[{"from": "tag:web", "to": "tag:db", "ports": [8000]}])
    await lan.join(web, "web")
    await lan.join(db, "db")
    refused = "ConnectionRefusedError"
    began = time.monotonic()
    assert await dial(client, web, name_of(db), 8000) == "hello"
    assert await dial(client, web, name_of(db), 8001) == refused
    assert await dial(client, db, name_of(web), 8000) == refused
    assert time.monotonic() - began < 4, "a refusal comes at once"
    await lan.join(web, "db")
    await lan.join(db, "web")
    assert await dial(client, web, name_of(db), 8000) == refused
    assert await dial(client, db, name_of(web), 8000) == "hello"
    await lan.rule()
    assert await dial(client, db, name_of(web), 8000) == refused
    await lan.rule(("internet", "*", [8000]))
    assert await dial(client, db, name_of(web), 8000) == refused
    await lan.rule(("*", "*", None))
    assert await dial(client, db, name_of(web), 8001) == "hello"


async def test_networks_do_not_lead_into_each_other(client: RawClient) -> None:
    left, middle, right = [await client.running() for _ in range(3)]
    await serve(client, right, 8000)
    for pair in ((left, middle), (middle, right)):
        lan = await Lan.make(client)
        for box in pair:
            await lan.join(box)
    assert await dial(client, middle, name_of(right), 8000) == "hello"
    found = await client.run(middle, f"getent hosts {name_of(right)}")
    address = found.stdout.split()[0]
    assert await dial(client, left, name_of(right), 8000) == "gaierror"
    assert await dial(client, left, address, 8000) == "ConnectionRefusedError"


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
    assert await dial(client, other, address, 8000) == "ConnectionRefusedError"
    assert await dial(client, other, name_of(one), 8000) == "gaierror"
    server.cancel()
    await asyncio.gather(server, return_exceptions=True)


@in_both_modes
async def test_allowed_destinations_are_reached_and_no_others(
    client: RawClient, listen: Listen
) -> None:
    port, other = await listen("0.0.0.0"), await listen("0.0.0.0")
    box = await client.running(network_allowlist=[f"{MACHINE}:{port}", "203.0.113.9"])
    # In force before the first command, without any wait.
    assert await dial(client, box, MACHINE, port) == "hello"
    assert await dial(client, box, MACHINE, other) == "ConnectionRefusedError"
    assert await dial(client, box, "203.0.113.9", port) == "ConnectionRefusedError"
    assert await dial(client, box, "prime-local.internal", port) == "hello"
    await set_policy(client, box, allowlist=["10.0.0.0/8", "a.example"])
    assert await dial(client, box, MACHINE, port) == "ConnectionRefusedError"
    await set_policy(client, box, allowlist=["*.internal"])
    assert await dial(client, box, MACHINE, port) == "hello"


async def test_refused_destinations_are_not_reached_and_all_others_are(
    client: RawClient, listen: Listen
) -> None:
    port, other = await listen("0.0.0.0"), await listen("0.0.0.0")
    box = await client.running(network_denylist=[f"{MACHINE}:{port}"])
    assert await dial(client, box, MACHINE, port) == "ConnectionRefusedError"
    assert await dial(client, box, MACHINE, other) == "hello"
    await set_policy(client, box, denylist=["0.0.0.0/0"])
    assert await dial(client, box, MACHINE, other) == "ConnectionRefusedError"
    await set_policy(client, box, denylist=[])
    assert await dial(client, box, MACHINE, port) == "hello"


@in_both_modes
async def test_an_empty_allowlist_cuts_the_network_off_with_names(
    client: RawClient, listen: Listen
) -> None:
    port = await listen("0.0.0.0")
    box = await client.running(network_allowlist=[])
    for _ in range(2):
        assert await dial(client, box, MACHINE, port) in ("OSError", "ConnectionRefusedError")
        assert await dial(client, box, "example.com", port) == "gaierror"
        assert await dial(client, box, "prime-local.internal", port) == "gaierror"
        await set_policy(client, box, denylist=[])
        assert await dial(client, box, MACHINE, port) == "hello"
        await set_policy(client, box, allowlist=[])


async def test_what_listens_on_the_loopback_of_this_machine_is_out_of_reach(
    client: RawClient, listen: Listen
) -> None:
    port = await listen("127.0.0.1")
    box = await client.running(network_denylist=[])
    own = own_addresses()
    assert {"127.0.0.1", MACHINE} <= own
    for address in own:
        assert await dial(client, box, address, port) == "ConnectionRefusedError"


async def test_only_one_address_of_this_machine_is_within_reach(
    client: RawClient, listen: Listen
) -> None:
    port = await listen("0.0.0.0")
    box = await client.running(network_denylist=[])
    own = own_addresses()
    reached = {address for address in own if await dial(client, box, address, port) == "hello"}
    assert reached == {MACHINE}


async def test_open_connections_survive_a_change_of_outbound_rules(
    client: RawClient, listen: Listen
) -> None:
    port = await listen("0.0.0.0")
    box = await client.running(network_denylist=[])
    talk = f"""
import os, socket, time
link = socket.create_connection(("{MACHINE}", {port}))
link.recv(5)
open("/tmp/open", "w").close()
while not os.path.exists("/tmp/go"):
    time.sleep(0.02)
link.send(b"again")
print(link.recv(5).decode())
"""
    talking = asyncio.create_task(client.run(box, f"python -I -S -c '{talk}'"))
    await client.run(box, "until [ -e /tmp/open ]; do sleep 0.05; done")
    await set_policy(client, box, allowlist=[])
    assert await dial(client, box, MACHINE, port) == "ConnectionRefusedError"
    await client.run(box, "touch /tmp/go")
    assert (await asyncio.wait_for(talking, 5)).stdout.strip() == "again"


@in_both_modes
async def test_a_sandbox_cannot_change_its_network(client: RawClient) -> None:
    one, other = await client.running(network_denylist=[]), await client.running()
    # Without rules there is nothing but the loopback.
    assert (await client.run(other, "ls /sys/class/net; grep -c : /proc/net/dev")).stdout == "1\n"
    tools = "PATH=$PATH:/usr/sbin:/sbin"
    for attempt in (
        "ip link set eth0 down",
        "ip address add 198.18.9.9/32 dev eth0",
        "ip route add 10.0.0.0/8 dev eth0",
        "ip link add dummy0 type dummy",
        "nft flush ruleset",
        "unshare -n true",
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        'python -c "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"',
        'python -c "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)"',
    ):
        result = await client.run(one, f"{tools} {attempt}")
        assert result.exit_code != 0, attempt
    assert (await client.run(one, "cat /proc/net/if_inet6")).stdout.count("eth0") == 0


async def test_a_sandbox_that_ends_makes_room(client: RawClient) -> None:
    one, other = await client.running(), await client.running()
    await serve(client, one, 8000)
    lan = await Lan.make(client)
    for box in (one, other):
        await lan.join(box)
    await client.call("DELETE", f"/api/v1/sandbox/{one['id']}")
    assert (await until_in_force(client, lan.path, "synced"))["members"] == [
        {"sandbox_id": other["id"], "tags": [], "synced": True}
    ]
    newcomer = await client.running()
    await serve(client, newcomer, 8000)
    await lan.join(newcomer)
    assert await dial(client, other, name_of(newcomer), 8000) == "hello"
    assert await dial(client, other, name_of(one), 8000) == "gaierror"


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
