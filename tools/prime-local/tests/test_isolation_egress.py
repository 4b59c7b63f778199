"""What isolated sandboxes reach outside, under their outbound rules."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import RawClient

MACHINE = "198.19.255.254"

in_both_modes = pytest.mark.parametrize("networked", ["full", "bwrap"], indirect=True)


@pytest.fixture
def client(networked: RawClient) -> RawClient:
    return networked


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


async def set_policy(client: RawClient, box: Any, **lists: object) -> None:
    path = f"/api/v1/sandbox/{box['id']}/egress-policy"
    answer = await client.call("PUT", path, {"allowlist": None, "denylist": None, **lists})
    assert answer.status == 200, answer.body
    await client.until_in_force(path, "applied")


def own_addresses() -> set[str]:
    return {line.split()[3].partition("/")[0] for line in os.popen("ip -4 -o address")}


@in_both_modes
async def test_allowed_destinations_are_reached_and_no_others(
    client: RawClient, listen: Listen
) -> None:
    port, other = await listen("0.0.0.0"), await listen("0.0.0.0")
    box = await client.running(network_allowlist=[f"{MACHINE}:{port}", "203.0.113.9"])
    # In force before the first command, without any wait.
    assert await client.dial(box, MACHINE, port) == "hello"
    assert await client.dial(box, MACHINE, other) == "ConnectionRefusedError"
    assert await client.dial(box, "203.0.113.9", port) == "ConnectionRefusedError"
    assert await client.dial(box, "prime-local.internal", port) == "hello"
    await set_policy(client, box, allowlist=["10.0.0.0/8", "a.example"])
    assert await client.dial(box, MACHINE, port) == "ConnectionRefusedError"
    await set_policy(client, box, allowlist=["*.internal"])
    assert await client.dial(box, MACHINE, port) == "hello"


async def test_refused_destinations_are_not_reached_and_all_others_are(
    client: RawClient, listen: Listen
) -> None:
    port, other = await listen("0.0.0.0"), await listen("0.0.0.0")
    box = await client.running(network_denylist=[f"{MACHINE}:{port}"])
    assert await client.dial(box, MACHINE, port) == "ConnectionRefusedError"
    assert await client.dial(box, MACHINE, other) == "hello"
    await set_policy(client, box, denylist=["0.0.0.0/0"])
    assert await client.dial(box, MACHINE, other) == "ConnectionRefusedError"
    await set_policy(client, box, denylist=[])
    assert await client.dial(box, MACHINE, port) == "hello"


@in_both_modes
async def test_an_empty_allowlist_cuts_the_network_off_with_names(
    client: RawClient, listen: Listen
) -> None:
    port = await listen("0.0.0.0")
    box = await client.running(network_allowlist=[])
    for _ in range(2):
        assert await client.dial(box, MACHINE, port) in (
            "OSError",
            "ConnectionRefusedError",
        )
        assert await client.dial(box, "example.com", port) == "gaierror"
        assert await client.dial(box, "prime-local.internal", port) == "gaierror"
        await set_policy(client, box, denylist=[])
        assert await client.dial(box, MACHINE, port) == "hello"
        await set_policy(client, box, allowlist=[])


async def test_what_listens_on_the_loopback_of_this_machine_is_out_of_reach(
    client: RawClient, listen: Listen
) -> None:
    port = await listen("127.0.0.1")
    box = await client.running(network_denylist=[])
    own = own_addresses()
    assert {"127.0.0.1", MACHINE} <= own
    for address in own:
        assert await client.dial(box, address, port) == "ConnectionRefusedError"


async def test_only_one_address_of_this_machine_is_within_reach(
    client: RawClient, listen: Listen
) -> None:
    port = await listen("0.0.0.0")
    box = await client.running(network_denylist=[])
    own = own_addresses()
    reached = {address for address in own if await client.dial(box, address, port) == "hello"}
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
    assert await client.dial(box, MACHINE, port) == "ConnectionRefusedError"
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
