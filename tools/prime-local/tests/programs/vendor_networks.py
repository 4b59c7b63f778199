"""Rules networks with the vendor's client, sync and async, and prints as JSON what it saw.

Runs in an environment that holds the vendor's package, not ours.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from prime_sandboxes import (
    APIClient,
    APIError,
    AsyncSandboxClient,
    CreateSandboxRequest,
    LanRule,
    SandboxClient,
)


def request(name: str, **fields: Any) -> CreateSandboxRequest:
    return CreateSandboxRequest(name=name, docker_image="python:3.11-slim", **fields)


def use_sync() -> dict[str, Any]:
    client = SandboxClient(APIClient())
    seen: dict[str, Any] = {}
    network = client.create_lan_network("demo", rules=[LanRule(from_="tag:web", to="*", ports=[1])])
    seen["rules"] = [(rule.from_, rule.to, rule.ports) for rule in network.rules]
    box = client.create(request("web", lan_network_id=network.id, lan_tags=["web"]))
    client.wait_for_creation(box.id)
    found = client.get_lan_network(network.id)
    seen["joined"] = [(each.tags, each.synced) for each in found.members or []]
    seen["retagged"] = client.add_lan_member(network.id, box.id, tags=["db"]).tags
    changed = client.set_lan_rules(network.id, [LanRule(from_="internet", to="*", ports=[8080])])
    seen["changed"] = [changed.rules[0].from_, changed.version - network.version]
    seen["listed"] = [each.name for each in client.list_lan_networks()]
    client.remove_lan_member(network.id, box.id)
    seen["members"] = len(client.get_lan_network(network.id).members or [])
    client.delete_lan_network(network.id)
    seen["open"] = [rule.from_ for rule in client.create_lan_network("open").rules]
    saved = client.set_network(box.id, allow=["Example.com", "10.1.2.3"])
    seen["saved"] = saved.policy.allowlist
    deadline = time.monotonic() + 10
    while not (status := client.get_network(box.id)).applied and time.monotonic() < deadline:
        time.sleep(0.05)
    seen["applied"] = status.applied_generation - saved.generation
    seen["closed"] = client.set_network(box.id, deny=["*"]).policy.allowlist
    client.delete(box.id)
    return seen


async def use_async() -> dict[str, Any]:
    async with AsyncSandboxClient() as client:
        network = await client.create_lan_network("demo")
        box = await client.create(request("late"))
        await client.wait_for_creation(box.id)
        await client.delete(box.id)
        try:
            await client.add_lan_member(network.id, box.id)
        except APIError as error:
            return {"refused": "Only running sandboxes can join a network" in str(error)}
    return {}


if __name__ == "__main__":
    print(json.dumps({**use_sync(), **asyncio.run(use_async())}))
