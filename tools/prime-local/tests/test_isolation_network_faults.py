"""Network rules on a machine that cannot enforce them, or not always: sandboxes stay closed."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import IsolationError
from prime_local.sandboxes.isolation import confined

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

MACHINE = "198.19.255.254"


@pytest.fixture(autouse=True)
def needs(helpers: Any) -> None:
    helpers.require_network_tools()


async def policy(client: RawClient, box: Any) -> Any:
    return (await client.call("GET", f"/api/v1/sandbox/{box['id']}/egress-policy")).body


async def reaches_machine(client: RawClient, box: Any, port: int) -> bool:
    result = await client.run(box, f"timeout 1 bash -c 'echo > /dev/tcp/{MACHINE}/{port}'")
    return result.exit_code == 0


async def test_without_the_tools_sandboxes_stay_closed_and_say_so(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, helpers: Any
) -> None:
    monkeypatch.setattr(confined, "_TOOLS", str(tmp_path))
    try:
        _, client = await open_platform(isolation="bwrap")
    except IsolationError as error:
        helpers.require_or_skip(str(error))
    closed = await client.running(network_allowlist=[])
    opened = await client.running(network_denylist=[])
    assert (await policy(client, closed))["applied"], "nothing gets out anyway"
    assert (await policy(client, opened))["applied_generation"] == -1
    made = await client.call("POST", "/api/v1/sandbox/networks", {"name": "lan"})
    path = f"/api/v1/sandbox/networks/{made.body['id']}"
    await client.call("PUT", f"{path}/members/{opened['id']}", {"tags": []})
    await asyncio.sleep(0.1)
    found = (await client.call("GET", path)).body
    assert [found["synced"], found["members"][0]["synced"]] == [False, False]
    for box in (closed, opened):
        assert (await client.run(box, "grep -c : /proc/net/dev")).stdout == "1\n"


async def test_rules_that_cannot_be_applied_are_retried_and_open_nothing(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, helpers: Any
) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    (tmp_path / "ip").symlink_to(shutil.which("ip") or "")
    script = f"#!/bin/sh\n[ -e {broken} ] && echo broken >&2 && exit 1\n"
    (tmp_path / "nft").write_text(f'{script}exec {shutil.which("nft")} "$@"\n')
    (tmp_path / "nft").chmod(0o755)
    monkeypatch.setattr(confined, "_TOOLS", str(tmp_path))
    try:
        platform, client = await open_platform(isolation="bwrap")
    except IsolationError as error:
        helpers.require_or_skip(str(error))
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "0.0.0.0", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        box = await client.running(network_denylist=[])
        assert (await policy(client, box))["applied_generation"] == -1
        assert not await reaches_machine(client, box, port)
        broken.unlink()
        await platform.advance(6)
        assert (await policy(client, box))["applied"]
        assert await reaches_machine(client, box, port)
        # What was in force before stays in force.
        broken.touch()
        body: dict[str, Any] = {"allowlist": [], "denylist": None}
        await client.call("PUT", f"/api/v1/sandbox/{box['id']}/egress-policy", body)
        await platform.advance(1)
        assert not (await policy(client, box))["applied"]
        assert await reaches_machine(client, box, port)
        broken.unlink()
        await platform.advance(6)
        assert (await policy(client, box))["applied"]
        assert not await reaches_machine(client, box, port)
