"""Routes that only this platform has: for tests to look behind the scenes and turn knobs."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Any

from aiohttp import web

from prime_local.billing.amounts import read_usd
from prime_local.billing.runs import RunTokens
from prime_local.calls import Reply
from prime_local.core import PlatformCore
from prime_local.errors import PlatformError
from prime_local.faults import read_rules

# Where each service's part of the contract is read.
DOCUMENTS = {
    "/openapi.json": "sandboxes",
    "/compute/openapi.json": "compute",
    "/inference/openapi.json": "inference",
    "/traces/openapi.json": "traces",
    "/training/openapi.json": "training",
}

Outage = Callable[[float, asyncio.BaseTransport | None], Coroutine[None, None, None]]


async def serve(core: PlatformCore, request: web.Request, outage: Outage) -> Reply:
    """Serve `/_local/...` and the contract; no key is needed, but a loopback address is.

    Raises:
        PlatformError: 403, 404 or 422.
    """
    if not ipaddress.ip_address(request.remote or "0.0.0.0").is_loopback:
        raise PlatformError(403, "Only this machine may use this route")
    route = (request.method, request.rel_url.raw_path)
    if route[1] in DOCUMENTS:
        return Reply(core.contract.documents[DOCUMENTS[route[1]]])
    if route == ("GET", "/_local/ledger"):
        return Reply({**core.ledger.snapshot()})
    if route == ("POST", "/_local/reset"):
        await core.reset()
        return Reply({})
    if route == ("POST", "/_local/clock/advance"):
        await core.advance(await _seconds(request))
        return Reply({"now": core.clock.date().isoformat()})
    if route == ("POST", "/_local/outage"):
        core.tasks.start(outage(await _seconds(request), request.transport))
        return Reply({}, headers={"Connection": "close"})
    if route == ("GET", "/_local/violations"):
        return Reply({"violations": core.violations})
    if route == ("DELETE", "/_local/violations"):
        violations, core.violations = core.violations, []
        return Reply({"violations": violations})
    if route == ("POST", "/_local/sandbox-ids"):
        return await _name_sandboxes(core, request)
    if route in (("POST", "/_local/pause"), ("POST", "/_local/resume")):
        return await _switch(core, request)
    if route == ("GET", "/_local/traces"):
        return Reply(asdict(core.traces.switches))
    if route == ("POST", "/_local/traces"):
        try:
            await core.traces.change(await _body(request))
        except ValueError as error:
            raise PlatformError(422, str(error)) from error
        return Reply(asdict(core.traces.switches))
    if route in (("GET", "/_local/inference"), ("POST", "/_local/inference")):
        return await _inference(core, request)
    if route == ("GET", "/_local/inference/calls"):
        return Reply({"calls": core.ledger.inference.calls()})
    if route == ("POST", "/_local/buckets"):
        return await _add_bucket(core, request)
    if route == ("GET", "/_local/training/capacity"):
        return Reply({"clusters": core.recording.capacity.state()})
    if route == ("GET", "/_local/training/samples"):
        return Reply({"files": [each.to_state() for each in core.recording.sample_files.all()]})
    if route == ("POST", "/_local/balance"):
        return await _set_balance(core, request)
    if route == ("POST", "/_local/sell-out"):
        return await _sell_out(core, request)
    if route[0] == "POST" and route[1] in _CHANGES:
        return _CHANGES[route[1]](core, await _body(request))
    if route == ("GET", "/_local/faults"):
        return Reply({"rules": core.faults.to_wire()})
    if route == ("POST", "/_local/faults"):
        try:
            core.faults.add(read_rules(await _body(request)))
        except ValueError as error:
            raise PlatformError(422, str(error)) from error
        return Reply({"rules": core.faults.to_wire()})
    if route == ("DELETE", "/_local/faults"):
        core.faults.clear()
        return Reply({"rules": []})
    raise PlatformError(404, "Not Found")


def _fail_pod(core: PlatformCore, body: dict[str, Any]) -> Reply:
    return _act(lambda: core.rentals.pods.fail(str(body.get("pod_id")), str(body["reason"])))


def _vanish_pod(core: PlatformCore, body: dict[str, Any]) -> Reply:
    return _act(lambda: core.rentals.pods.vanish(str(body.get("pod_id"))))


def _act(act: Callable[[], None]) -> Reply:
    try:
        act()
    except KeyError as error:
        raise PlatformError(422, f"{error} is missing") from error
    except ValueError as error:
        raise PlatformError(409, str(error)) from error
    return Reply({})


def _put_run(core: PlatformCore, body: dict[str, Any]) -> Reply:
    try:
        core.rentals.runs.put(str(body.pop("run_id")), RunTokens(**body))
    except (KeyError, TypeError) as error:
        raise PlatformError(422, "run_id, training, input and output") from error
    return Reply({})


def _approve_login(core: PlatformCore, body: dict[str, Any]) -> Reply:
    try:
        core.account.challenges.approve(str(body.get("challenge")))
    except ValueError as error:
        raise PlatformError(409, str(error)) from error
    return Reply({})


def _add_key(core: PlatformCore, body: dict[str, Any]) -> Reply:
    try:
        return Reply({"api_key": core.account.keys.make(**body)})
    except (TypeError, ValueError) as error:
        raise PlatformError(422, f"name, scopes, limits, lifetime: {error}") from error


def _set_training_pace(core: PlatformCore, body: dict[str, Any]) -> Reply:
    runs = core.recording.runs
    try:
        runs.pace = runs.pace.changed(body)
    except ValueError as error:
        raise PlatformError(422, str(error)) from error
    return Reply(asdict(runs.pace))


def _fail_run(core: PlatformCore, body: dict[str, Any]) -> Reply:
    return _act(lambda: core.recording.runs.fail(str(body.get("run_id")), str(body["reason"])))


def _set_training_access(core: PlatformCore, body: dict[str, Any]) -> Reply:
    capacity = core.recording.capacity
    try:
        capacity.access = capacity.access.changed(body)
    except ValueError as error:
        raise PlatformError(422, str(error)) from error
    return Reply(asdict(capacity.access))


def _set_training_capacity(core: PlatformCore, body: dict[str, Any]) -> Reply:
    capacity = core.recording.capacity
    try:
        capacity.change(**body)
    except (TypeError, ValueError) as error:
        raise PlatformError(422, f"gpu_type, free, price, reserved: {error}") from error
    return Reply({"clusters": capacity.state()})


_CHANGES = {
    "/_local/keys": _add_key,
    "/_local/login/approve": _approve_login,
    "/_local/pods/fail": _fail_pod,
    "/_local/pods/vanish": _vanish_pod,
    "/_local/runs": _put_run,
    "/_local/training/access": _set_training_access,
    "/_local/training/capacity": _set_training_capacity,
    "/_local/training/fail": _fail_run,
    "/_local/training/pace": _set_training_pace,
}


async def _switch(core: PlatformCore, request: web.Request) -> Reply:
    sandbox_id = str((await _body(request)).get("sandbox_id"))
    try:
        if request.rel_url.raw_path == "/_local/pause":
            core.pause(sandbox_id)
        else:
            core.resume(sandbox_id)
    except ValueError as error:
        raise PlatformError(409, str(error)) from error
    return Reply({})


async def _inference(core: PlatformCore, request: web.Request) -> Reply:
    if request.method == "POST":
        try:
            core.inference.change(await _body(request))
        except ValueError as error:
            raise PlatformError(422, str(error)) from error
    return Reply(asdict(core.inference.switches))


async def _set_balance(core: PlatformCore, request: web.Request) -> Reply:
    body = await _body(request)
    try:
        core.rentals.wallets.set_balance(body.get("team_id"), read_usd("balance", body.get("usd")))
    except ValueError as error:
        raise PlatformError(422, str(error)) from error
    return Reply({})


async def _add_bucket(core: PlatformCore, request: web.Request) -> Reply:
    name = str((await _body(request)).get("name"))
    try:
        return Reply(core.s3.add_bucket(name, str(request.url.origin())))
    except ValueError as error:
        raise PlatformError(422, str(error)) from error


async def _sell_out(core: PlatformCore, request: web.Request) -> Reply:
    body = await _body(request)
    cloud_id, place = body.get("cloud_id"), body.get("data_center_id")
    sold_out = body.get("sold_out", True)
    count = core.catalogue.sell_out(str(cloud_id), place, sold_out=bool(sold_out))
    if not count:
        raise PlatformError(404, f"no offer of {cloud_id!r} there")
    return Reply({"offers": count})


async def _name_sandboxes(core: PlatformCore, request: web.Request) -> Reply:
    ids = (await _body(request)).get("ids")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise PlatformError(422, "ids must be a list of text")
    try:
        core.name_sandboxes(ids)
    except ValueError as error:
        raise PlatformError(422, str(error)) from error
    return Reply({})


async def _seconds(request: web.Request) -> float:
    seconds = (await _body(request)).get("seconds")
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
        raise PlatformError(422, "seconds must be a number of at least 0")
    return seconds


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise PlatformError(422, "The body must be a JSON object")
    return body
