"""Outbound rules and private networks through the client."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    APIError,
    AsyncSandboxClient,
    ConflictError,
    CreateSandboxRequest,
    LanNetwork,
    LanRule,
    NetworkSyncTimeoutError,
    NotFoundError,
    PrimeError,
)
from prime_sandboxes.models import EgressPolicyStatus

if TYPE_CHECKING:
    from conftest import Running, ScriptedServer, StartPlatform

pytestmark = pytest.mark.timeout(30)

BOX: dict[str, Any] = {"name": "box", "docker_image": "python:3.11-slim"}
OPEN = LanRule(from_="*", to="*")
NETWORK = {
    "id": "net_1",
    "name": "lan",
    "rules": [{"from": "*", "to": "*"}],
    "version": 1,
    "synced": True,
    "created_at": "2026-11-20T09:15:00Z",
}


@pytest.fixture
async def platform(start_platform: StartPlatform) -> LocalPlatform:
    """A platform that says of its rules that they are in force, as they are in other modes."""
    return await start_platform(assumptions=Assumptions(unenforced_rules="applied"))


def requests(platform: LocalPlatform, operation: str) -> int:
    return platform.ledger()["requests"].get(operation, 0)


async def test_outbound_rules_are_replaced_and_awaited(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    before = await either.get_network(box.id)
    assert (before.policy.allowlist, before.policy.denylist) == (None, None)
    saved = await either.set_network(box.id, allow=["API.example.com", "*.example.org"])
    assert saved.policy.allowlist == ["api.example.com", "*.example.org"]
    assert saved.generation == before.generation + 1
    applied = await either.wait_for_network(box.id)
    assert applied.applied
    assert applied.applied_generation == applied.generation == saved.generation
    assert (await either.set_network(box.id, deny=["1.2.3.4"])).policy.denylist == ["1.2.3.4/32"]


@pytest.mark.parametrize(
    ("change", "lists"),
    [
        ({"allow": ["*"]}, (None, [])),
        ({"deny": ["*"]}, ([], None)),
        ({"allow": ["10.0.0.0/8"]}, (["10.0.0.0/8"], None)),
        ({"deny": ("a.example",)}, (None, ["a.example"])),
    ],
)
async def test_a_star_stands_for_everything(
    client: AsyncSandboxClient, running: Running, change: dict[str, Any], lists: tuple[Any, Any]
) -> None:
    box = await running(client)
    policy = (await client.set_network(box.id, **change)).policy
    assert (policy.allowlist, policy.denylist) == lists


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "exactly one"),
        ({"allow": ["a.example"], "deny": ["b.example"]}, "exactly one"),
        ({"allow": []}, "allow is empty"),
        ({"deny": []}, "deny is empty"),
        ({"allow": "a.example"}, "allow is a list"),
        ({"allow": ["*", "a.example"]}, "only entry of allow"),
        ({"deny": ["a.example", "a..b"]}, r"denylist\[1\]"),
        ({"allow": ["a.example"] * 1025}, "1025"),
    ],
)
async def test_rules_that_are_none_are_not_sent(
    either: AsyncSandboxClient, platform: LocalPlatform, change: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        await either.set_network("sbx_1", **change)
    assert requests(platform, "set_egress_policy") == 0


async def test_rules_of_what_does_not_run_are_refused(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    await client.delete(box.id)
    with pytest.raises(ConflictError):
        await client.set_network(box.id, deny=["*"])
    with pytest.raises(NotFoundError):
        await client.get_network("sbx_none")


async def test_a_lost_answer_to_a_change_of_rules_is_repaired(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule("set_egress_policy", nth=1, reset="after_commit"))
    assert (await client.set_network(box.id, deny=["*"])).policy.allowlist == []
    assert requests(platform, "set_egress_policy") == 2


async def test_waiting_for_rules_ends_with_a_timeout(start_platform: StartPlatform) -> None:
    await start_platform()  # in this mode nothing enforces them
    async with AsyncSandboxClient() as client:
        box = await client.create(CreateSandboxRequest(**BOX, network_allowlist=[]))
        began = time.monotonic()
        with pytest.raises(TimeoutError, match="saved") as caught:
            await client.wait_for_network(box.id, 0.5)
        assert time.monotonic() - began < 3
        assert isinstance(caught.value, NetworkSyncTimeoutError)
        assert isinstance(caught.value, PrimeError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        with pytest.raises(ValueError, match="timeout_seconds"):
            await client.wait_for_network(box.id, 0)


async def test_a_network_lives_from_create_to_delete(
    either: AsyncSandboxClient, running: Running
) -> None:
    network = await either.create_lan_network("demo")
    assert network.rules == [OPEN]
    box = await running(either)
    member = await either.add_lan_member(network.id, box.id, tags=["web", "front"])
    assert (member.sandbox_id, member.tags) == (box.id, ["web", "front"])
    rules = [
        LanRule(from_="tag:web", to="tag:db", ports=[5432, 6379]),
        LanRule(from_="internet", to="tag:web", ports=[8080]),
    ]
    changed = await either.set_lan_rules(network.id, rules)
    assert changed.rules == rules
    assert changed.version == network.version + 1
    found = await either.get_lan_network(network.id)
    assert [each.sandbox_id for each in found.members or ()] == [box.id]
    assert [each.id for each in await either.list_lan_networks()] == [network.id]
    # What was read can be sent back.
    assert (await either.set_lan_rules(network.id, [*found.rules, OPEN])).rules == [*rules, OPEN]
    await either.remove_lan_member(network.id, box.id)
    assert (await either.get_lan_network(network.id)).members == []
    await either.delete_lan_network(network.id)
    with pytest.raises(NotFoundError):
        await either.get_lan_network(network.id)


async def test_a_network_belongs_to_the_team_that_is_named(
    either: AsyncSandboxClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await either.create_lan_network("demo", team_id="t1")
    assert made.team_id == "t1"
    assert await either.list_lan_networks() == []
    assert [each.id for each in await either.list_lan_networks("t1")] == [made.id]
    monkeypatch.setenv("PRIME_TEAM_ID", "t1")
    async with AsyncSandboxClient() as configured:
        assert [each.id for each in await configured.list_lan_networks()] == [made.id]
        assert (await configured.create_lan_network("mine", team_id="")).team_id is None


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"from_": "web", "to": "*"}, "from_"),
        ({"from_": "tag:Web", "to": "*"}, "from_"),
        ({"from_": "*", "to": "internet"}, "to is"),
        ({"from_": "internet", "to": "*"}, "name its ports"),
        ({"from_": "internet", "to": "*", "ports": [80, 2222]}, "reserved"),
        ({"from_": "internet", "to": "*", "ports": [49983]}, "reserved"),
        ({"from_": "*", "to": "*", "ports": []}, "1 to 64"),
        ({"from_": "*", "to": "*", "ports": list(range(1, 66))}, "1 to 64"),
        ({"from_": "*", "to": "*", "ports": [0]}, "1 to 65535"),
        ({"from_": "*", "to": "*", "port": [80]}, "port"),
    ],
)
def test_a_rule_that_is_none_cannot_be_made(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        LanRule(**fields)


def test_a_rule_of_a_newer_platform_is_read_and_sent_back_whole() -> None:
    rule = {"from": "cidr:10.0.0.0/8", "to": "*", "protocol": "udp"}
    network = LanNetwork.model_validate({**NETWORK, "rules": [rule]})
    assert network.rules[0].from_ == "cidr:10.0.0.0/8"
    from prime_core.models import encode_request
    from prime_sandboxes.models import SetLanRulesRequest

    sent = json.loads(encode_request(SetLanRulesRequest(rules=network.rules)))
    assert sent == {"rules": [rule]}


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda client: client.create_lan_network(""), "name"),
        (lambda client: client.create_lan_network("n" * 129), "name"),
        (lambda client: client.create_lan_network("n", rules=[OPEN] * 257), "rules"),
        (lambda client: client.set_lan_rules("net_1", [OPEN] * 257), "rules"),
        (lambda client: client.set_lan_rules("", []), "network_id"),
        (lambda client: client.add_lan_member("net_1", ""), "sandbox_id"),
        (lambda client: client.add_lan_member("net_1", "sbx_1", "web"), "tags is a list"),
        (lambda client: client.add_lan_member("net_1", "sbx_1", ["Web"]), r"tags\[0\]"),
        (lambda client: client.add_lan_member("net_1", "sbx_1", ["a", "a" * 64]), r"tags\[1\]"),
        (
            lambda client: client.add_lan_member("net_1", "sbx_1", [f"t{n}" for n in range(17)]),
            "at most 16",
        ),
    ],
)
async def test_what_cannot_be_a_network_or_member_is_not_sent(
    platform: LocalPlatform, client: AsyncSandboxClient, call: Callable[[Any], Any], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        await call(client)
    assert platform.ledger()["requests"] == {}


async def test_a_create_whose_answer_is_lost_is_not_repeated(
    platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    platform.add_faults(FaultRule("create_lan_network", nth=1, reset="after_commit"))
    with pytest.raises(APIConnectionError):
        await client.create_lan_network("demo")
    assert requests(platform, "create_lan_network") == 1
    # As the documentation of the method says: look before you send it again.
    assert [network.name for network in await client.list_lan_networks()] == ["demo"]


async def test_rules_may_come_back_in_another_order(
    scripted: ScriptedServer, client_of_script: AsyncSandboxClient
) -> None:
    rules = [LanRule(from_="*", to="tag:a", ports=[1, 2]), OPEN]
    back = [{"from": "*", "to": "*"}, {"from": "*", "to": "tag:a", "ports": [2, 1]}]
    scripted.answer_json(201, {**NETWORK, "rules": back})
    assert (await client_of_script.create_lan_network("lan", rules=rules)).id == "net_1"
    assert len(scripted.received) == 1


@pytest.mark.parametrize("rules", [[], [LanRule(from_="tag:a", to="tag:b")]])
async def test_a_network_whose_rules_were_ignored_is_deleted(
    scripted: ScriptedServer, client_of_script: AsyncSandboxClient, rules: list[LanRule]
) -> None:
    scripted.answer_json(201, NETWORK)
    scripted.answer_json(200, {"success": True})
    with pytest.raises(APIError, match="ignored the rules"):
        await client_of_script.create_lan_network("lan", rules=rules)
    last = scripted.received[-1]
    assert (last.method, last.path) == ("DELETE", "/api/v1/sandbox/networks/net_1")


async def test_an_open_network_that_cannot_be_deleted_is_named(
    scripted: ScriptedServer, client_of_script: AsyncSandboxClient
) -> None:
    scripted.answer_json(201, NETWORK)
    scripted.answer_json(403, {"detail": "no"})
    with pytest.raises(APIError, match="net_1"):
        await client_of_script.create_lan_network("lan", rules=[])


@pytest.fixture
async def client_of_script(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AsyncSandboxClient]:
    monkeypatch.setenv("PRIME_BASE_URL", scripted.url)
    async with AsyncSandboxClient("key") as client:
        yield client


def test_a_state_from_before_the_wait_does_not_end_it() -> None:
    """A question that another wait asked may tell of the rules before these."""
    from prime_core.polling import PollSchedule
    from prime_sandboxes.networks import wait_until_applied

    answers = [(0.0, True), (1e9, False), (1e9, True)]
    seen: list[bool] = []

    async def fetch(keys: list[str]) -> dict[str, Any]:
        asked, applied = answers.pop(0)
        seen.append(applied)
        status = EgressPolicyStatus.model_validate(
            {"policy": {}, "generation": 1, "applied_generation": int(applied), "applied": applied}
        )
        return {keys[0]: (asked, status)}

    async def wait() -> None:
        schedule: PollSchedule[str, Any] = PollSchedule(fetch, transient=lambda error: False)
        await wait_until_applied(schedule, "sbx_1", 20)

    asyncio.run(wait())
    assert seen == [True, False, True]
