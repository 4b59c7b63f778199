"""Routes of outbound rules and private networks: records, states, refusals, restarts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, LocalPlatform

if TYPE_CHECKING:
    from conftest import Answer, OpenPlatform, RawClient

NETWORKS = "/api/v1/sandbox/networks"
PRETEND = Assumptions(unenforced_rules="applied")
EVERYONE = [{"from": "*", "to": "*"}]


def policy_path(box: dict[str, Any]) -> str:
    return f"/api/v1/sandbox/{box['id']}/egress-policy"


async def put_policy(client: RawClient, box: dict[str, Any], **lists: object) -> Answer:
    body = {"allowlist": None, "denylist": None, **lists}
    return await client.call("PUT", policy_path(box), body)


async def make_network(client: RawClient, **fields: object) -> dict[str, Any]:
    answer = await client.call("POST", NETWORKS, {"name": "lan", **fields})
    assert answer.status == 201, answer.body
    made: dict[str, Any] = answer.body
    return made


async def join(client: RawClient, network: Any, box: Any, *tags: str) -> Answer:
    path = f"{NETWORKS}/{network['id']}/members/{box['id']}"
    return await client.call("PUT", path, {"tags": list(tags)})


async def read(client: RawClient, network: dict[str, Any]) -> Any:
    answer = await client.call("GET", f"{NETWORKS}/{network['id']}")
    assert answer.status == 200, answer.body
    return answer.body


async def test_rules_are_saved_at_once_and_applied_later(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(network_delay=5, assumptions=PRETEND)
    box = await client.running()
    before = (await client.call("GET", policy_path(box))).body
    assert before["policy"] == {"allowlist": None, "denylist": None}
    assert before["applied"] is True
    saved = (await put_policy(client, box, allowlist=["a.example"])).body
    assert saved["generation"] == before["generation"] + 1
    assert saved["applied_generation"] == before["generation"]
    assert saved["applied"] is False
    await platform.advance(4)
    assert (await client.call("GET", policy_path(box))).body == saved
    await platform.advance(2)
    now = (await client.call("GET", policy_path(box))).body
    assert (now["applied"], now["applied_generation"]) == (True, saved["generation"])
    assert now["policy"] == {"allowlist": ["a.example"], "denylist": None}
    assert (await client.get(box))["networkAllowlist"] == ["a.example"]


async def test_entries_come_back_in_one_spelling(client: RawClient) -> None:
    box = await client.running(
        network_denylist=["Bücher.Example", "1.2.3.4", "10.1.2.3/8", "1.2.3.4/32", "*.A.B:443"]
    )
    spelled = ["xn--bcher-kva.example", "1.2.3.4/32", "10.0.0.0/8", "*.a.b:443"]
    assert box["networkDenylist"] == spelled
    answer = await put_policy(client, box, denylist=["1.2.3.4:80-90", "1.2.3.4:80-90"])
    assert answer.body["policy"]["denylist"] == ["1.2.3.4/32:80-90"]


@pytest.mark.parametrize("entry", ["https://a.example", "::1", "a..b", "1.2.3.999", "a.b:8080"])
async def test_what_is_no_entry_is_refused_by_name(client: RawClient, entry: str) -> None:
    body = {"name": "box", "docker_image": "python", "network_allowlist": ["fine.example", entry]}
    created = await client.call("POST", "/api/v1/sandbox", body)
    box = await client.running()
    changed = await put_policy(client, box, allowlist=[entry])
    for answer, name in ((created, "network_allowlist"), (changed, "allowlist")):
        assert answer.status == 422
        assert answer.body["detail"][0]["loc"] == ["body", name]
    assert (await client.call("GET", policy_path(box))).body["generation"] == 0


async def test_a_policy_has_exactly_one_list(client: RawClient) -> None:
    box = await client.running()
    assert (await put_policy(client, box)).status == 400
    assert (await put_policy(client, box, allowlist=[], denylist=[])).status == 400
    assert (await client.call("PUT", policy_path(box), {"allowlist": []})).status == 422
    assert (await put_policy(client, box, allowlist=["a.example"] * 1025)).status == 422


async def test_only_a_running_sandbox_takes_other_rules(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(start_delay=60)
    box = await client.create()
    assert (await put_policy(client, box, denylist=[])).status == 409
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    assert (await put_policy(client, box, denylist=[])).status == 409
    assert (await client.call("GET", policy_path(box))).status == 200
    assert (await client.call("GET", policy_path({"id": "sbx_none"}))).status == 404
    assert (await put_policy(client, {"id": "sbx_none"}, denylist=[])).status == 404


async def test_what_nothing_enforces_is_never_said_to_be_in_force(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    assert prime_platform.isolation == "process"
    closed = await client.running(network_allowlist=[])
    network = await make_network(client)
    assert (await join(client, network, closed, "a")).status == 200
    await prime_platform.advance(600)
    assert (await client.call("GET", policy_path(closed))).body["applied_generation"] == -1
    found = await read(client, network)
    assert not found["synced"]
    assert not found["members"][0]["synced"]


async def test_a_new_network_is_open_unless_rules_are_given(client: RawClient) -> None:
    assert (await make_network(client))["rules"] == EVERYONE
    assert (await make_network(client, rules=[]))["rules"] == []
    rules = [{"from": "tag:web", "to": "tag:db", "ports": [5432]}]
    made = await make_network(client, rules=rules)
    assert made["rules"] == rules
    assert (made["team_id"], made["members"], made["synced"]) == (None, [], False)


async def test_networks_are_listed_by_owner_without_members(client: RawClient) -> None:
    mine, theirs = await make_network(client), await make_network(client, team_id="t1")
    assert theirs["team_id"] == "t1"
    for query, network in (("", mine), ("?team_id=t1", theirs)):
        (listed,) = (await client.call("GET", NETWORKS + query)).body["networks"]
        assert listed["id"] == network["id"]
        assert "members" not in listed
    assert (await client.call("GET", NETWORKS + "?team_id=t2")).body == {"networks": []}


async def test_rules_are_replaced_and_in_force_later(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(network_delay=5, assumptions=PRETEND)
    network = await make_network(client)
    await platform.advance(6)
    assert (await read(client, network))["synced"]
    rules = [{"from": "internet", "to": "*", "ports": [8080]}, *EVERYONE]
    path = f"{NETWORKS}/{network['id']}/rules"
    changed = (await client.call("PUT", path, {"rules": rules})).body
    assert changed["rules"] == rules
    assert changed["version"] == network["version"] + 1
    assert not changed["synced"]
    await platform.advance(6)
    assert (await read(client, network))["synced"]
    assert (await client.call("PUT", path, {"rules": []})).body["rules"] == []


@pytest.mark.parametrize(
    "rule",
    [
        {"from": "web", "to": "*"},
        {"from": "*", "to": "internet"},
        {"from": "internet", "to": "*"},
        {"from": "internet", "to": "*", "ports": None},
        {"from": "internet", "to": "*", "ports": []},
        {"from": "internet", "to": "*", "ports": [80, 2222]},
        {"from": "internet", "to": "*", "ports": [49983]},
        {"from": "*", "to": "*", "ports": [0]},
        {"from": "*", "to": "*", "ports": list(range(1, 66))},
        {"from": "tag:" + "a" * 64, "to": "*"},
    ],
)
async def test_what_is_no_rule_is_refused(client: RawClient, rule: dict[str, Any]) -> None:
    body = {"name": "lan", "rules": [rule]}
    assert (await client.call("POST", NETWORKS, body)).status == 422
    network = await make_network(client)
    path = f"{NETWORKS}/{network['id']}/rules"
    assert (await client.call("PUT", path, {"rules": [rule]})).status == 422
    assert (await read(client, network))["rules"] == EVERYONE


async def test_a_member_is_added_once_and_its_tags_are_replaced(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform(network_delay=5, assumptions=PRETEND)
    network, box = await make_network(client), await client.running()
    added = (await join(client, network, box, "web", "front", "web")).body
    assert added == {"sandbox_id": box["id"], "tags": ["web", "front"], "synced": False}
    await platform.advance(6)
    assert (await read(client, network))["members"] == [{**added, "synced": True}]
    again = (await join(client, network, box, "db")).body
    assert again == {"sandbox_id": box["id"], "tags": ["db"], "synced": False}
    assert len((await read(client, network))["members"]) == 1


async def test_who_may_not_join_hears_the_documented_reason(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(start_delay=30)
    network = await make_network(client)
    waiting = await client.create()
    others = await client.create(team_id="t1")
    container = await client.create(vm=False)
    texts = {
        waiting["id"]: "Only running sandboxes can join a network",
        others["id"]: "The sandbox and the network must belong to the same team or user",
        container["id"]: "Only VM sandboxes can join a network",
    }
    for box in (waiting, others, container):
        answer = await join(client, network, box)
        assert (answer.status, answer.body["detail"]) == (409, texts[box["id"]])
    assert (await join(client, network, {"id": "sbx_none"})).status == 404
    assert (await join(client, {"id": "net_none"}, waiting)).status == 404
    assert (await read(client, network))["members"] == []


async def test_a_sandbox_is_in_at_most_32_networks(client: RawClient) -> None:
    box = await client.running()
    networks = [await make_network(client) for _ in range(33)]
    for network in networks[:32]:
        assert (await join(client, network, box)).status == 200
    refused = await join(client, networks[32], box)
    assert refused.status == 409
    assert "32" in refused.body["detail"]
    # It can still change where it is.
    assert (await join(client, networks[0], box, "x")).status == 200


async def test_too_many_or_wrong_tags_are_refused(client: RawClient) -> None:
    network, box = await make_network(client), await client.running()
    for tags in ([f"t{number}" for number in range(17)], ["Web"], ["-a"], [""]):
        assert (await join(client, network, box, *tags)).status == 422


async def test_who_is_removed_or_stops_is_no_member_any_more(client: RawClient) -> None:
    network = await make_network(client)
    one, other = await client.running(), await client.running()
    for box in (one, other):
        await join(client, network, box)
    path = f"{NETWORKS}/{network['id']}/members/{one['id']}"
    assert (await client.call("DELETE", path)).status == 200
    assert (await client.call("DELETE", path)).status == 404
    assert [each["sandbox_id"] for each in (await read(client, network))["members"]] == [
        other["id"]
    ]
    await client.call("DELETE", f"/api/v1/sandbox/{other['id']}")
    assert (await read(client, network))["members"] == []


async def test_a_deleted_network_is_gone(client: RawClient) -> None:
    network = await make_network(client)
    path = f"{NETWORKS}/{network['id']}"
    assert (await client.call("DELETE", path)).status == 200
    for method, rest, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("PUT", "/rules", {"rules": []}),
    ):
        assert (await client.call(method, path + rest, body)).status == 404


async def test_networks_survive_a_restart_without_their_members(
    open_platform: OpenPlatform, tmp_path: Path, helpers: Any
) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        rules = [{"from": "tag:a", "to": "*", "ports": [1, 2]}]
        kept = await make_network(client, rules=rules, team_id="t1")
        gone = await make_network(client)
        box = await client.running(team_id="t1", network_denylist=["1.2.3.4"])
        assert (await join(client, kept, box, "a")).status == 200
        await client.call("DELETE", f"{NETWORKS}/{gone['id']}")
        await put_policy(client, box, denylist=["5.6.7.8"])
    _, client = await open_platform(data_dir=tmp_path)
    found = await read(client, kept)
    assert {name: found[name] for name in ("name", "rules", "version", "team_id", "members")} == {
        "name": "lan",
        "rules": rules,
        "version": 1,
        "team_id": "t1",
        "members": [],
    }
    assert (await client.call("GET", f"{NETWORKS}/{gone['id']}")).status == 404
    policy = (await client.call("GET", policy_path(box))).body
    assert policy["policy"]["denylist"] == ["5.6.7.8/32"]
    assert policy["generation"] == 1


async def test_a_reset_forgets_networks(prime_platform: LocalPlatform, client: RawClient) -> None:
    network = await make_network(client)
    await join(client, network, await client.running())
    await prime_platform.reset()
    assert (await client.call("GET", NETWORKS)).body == {"networks": []}
