"""Calls of the routes of training volumes, on one called research."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import RawClient

VOLUMES = "/api/v1/training/volumes"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIexample ada"


async def call(client: RawClient, method: str, path: str, body: Any = None) -> Any:
    """Call a route that must succeed."""
    answer = await client.call(method, VOLUMES + path, body)
    assert answer.status < 300, answer.body
    return answer.body


async def refusal(client: RawClient, method: str, path: str, body: Any = None) -> tuple[int, str]:
    answer = await client.call(method, VOLUMES + path, body)
    detail = answer.body["detail"]
    return answer.status, detail if isinstance(detail, str) else "validation"


async def made(client: RawClient, name: str = "research", **fields: Any) -> Any:
    return await call(client, "POST", "", {"name": name, "size": "500Gi", **fields})


async def route(client: RawClient, mode: str, path: str = "", **fields: Any) -> Any:
    body = {"mode": mode, "path": path, **fields}
    return await call(client, "POST", "/research/transfer", body)


async def lab_with_key(client: RawClient) -> str:
    """Add an SSH key, and return the team that has an allocation."""
    await client.call("POST", "/api/v1/ssh_keys/", {"name": "k", "publicKey": KEY})
    teams = (await client.call("GET", "/api/v1/user/teams")).body["data"]
    found: str = next(team["teamId"] for team in teams if team["name"] == "Research Lab")
    return found
