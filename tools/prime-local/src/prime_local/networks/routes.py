"""Routes of outbound rules and private networks."""

from __future__ import annotations

import asyncio
import contextlib

from prime_local.calls import Call, Handler, Reply
from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.control import life_of, scope_of, team_of
from prime_local.errors import PlatformError, invalid
from prime_local.networks.entries import canonical
from prime_local.networks.lans import LanNetwork
from prime_local.sandboxes.record import Owner, Status

_RESERVED_PORTS = frozenset({49983, 2222})
# How long a removal waits for its effect before it is answered.
_CUT_SECONDS = 5.0


async def get_egress_policy(call: Call) -> Reply:
    return Reply(life_of(call).record.to_egress_wire())


async def set_egress_policy(call: Call) -> Reply:
    life, body = life_of(call), call.body
    if (body["allowlist"] is None) == (body["denylist"] is None):
        raise PlatformError(
            400, "Give exactly one of allowlist and denylist, and null for the other"
        )
    lists = {}
    for name in ("allowlist", "denylist"):
        try:
            lists[name] = canonical(body[name])
        except ValueError as error:
            raise invalid([Problem(("body", name), str(error), "value_error")]) from error
    if life.record.status is not Status.RUNNING:
        raise PlatformError(409, f"Sandbox is not running ({life.record.status.value})")
    life.replace_egress(**lists)
    call.core.fabric.changed()
    await call.core.saved()
    return Reply(life.record.to_egress_wire())


async def create_lan_network(call: Call) -> Reply:
    core, body = call.core, call.body
    rules = body.get("rules")
    _check_rules(rules or [])
    network = core.lans.create(body["name"], Owner(core.user_id, team_of(call, body)), rules)
    core.fabric.changed()
    await core.saved()
    return Reply(_with_members(network), 201)


async def list_lan_networks(call: Call) -> Reply:
    networks = call.core.lans.of(scope_of(call, call.parameters))
    return Reply({"networks": [network.to_wire() for network in networks]})


async def get_lan_network(call: Call) -> Reply:
    return Reply(_with_members(_network(call)))


async def delete_lan_network(call: Call) -> Reply:
    call.core.lans.delete(call.parameters["network_id"])
    await _cut(call)
    return Reply({"success": True, "message": "Network deleted"})


async def set_lan_rules(call: Call) -> Reply:
    network, rules = _network(call), call.body["rules"]
    _check_rules(rules)
    call.core.lans.set_rules(network, rules)
    call.core.fabric.changed()
    await call.core.saved()
    return Reply(_with_members(network))


async def put_lan_member(call: Call) -> Reply:
    network, life = _network(call), life_of(call)
    member = call.core.lans.put_member(network, life.record, call.body["tags"])
    call.core.fabric.changed()
    return Reply(member.to_wire())


async def remove_lan_member(call: Call) -> Reply:
    call.core.lans.remove_member(_network(call), call.parameters["sandbox_id"])
    await _cut(call)
    return Reply({"success": True, "message": "Sandbox removed from the network"})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        get_egress_policy,
        set_egress_policy,
        create_lan_network,
        list_lan_networks,
        get_lan_network,
        delete_lan_network,
        set_lan_rules,
        put_lan_member,
        remove_lan_member,
    )
}


def _network(call: Call) -> LanNetwork:
    return call.core.lans.get(call.parameters["network_id"])


def _with_members(network: LanNetwork) -> JsonObject:
    members = [member.to_wire() for member in network.members.values()]
    return {**network.to_wire(), "members": members}


def _check_rules(rules: list[JsonObject]) -> None:
    """Refuse what the contract's schema cannot tell from a good rule."""
    problems = []
    for position, rule in enumerate(rules):
        ports = rule.get("ports") or []
        where = ("body", "rules", position, "ports")
        if rule["from"] == "internet" and not ports:
            problems.append(Problem(where, "An internet rule must name its ports", "value_error"))
        elif rule["from"] == "internet" and not _RESERVED_PORTS.isdisjoint(ports):
            text = "Ports 49983 and 2222 are reserved and cannot be exposed"
            problems.append(Problem(where, text, "value_error"))
    if problems:
        raise invalid(problems)


async def _cut(call: Call) -> None:
    """Wait until what was removed is cut off, which is at once and not some time later."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(call.core.fabric.apply(), _CUT_SECONDS)
    await call.core.saved()
