"""Routes of pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.pods.record import Pod
from prime_local.pods.registry import PodRegistry
from prime_local.sandboxes.record import Owner

T = TypeVar("T")


async def list_pods(call: Call) -> Reply:
    pods = _pods(call)
    return Reply(offset_page(call, pods.live(), pods.read))


async def create_pod(call: Call) -> Reply:
    doom = None if call.fault is None else call.fault.fails
    wire = _pods(call).create(call.body, owner_of(call), doom)
    await call.core.saved()
    return Reply(wire)


async def list_pod_history(call: Call) -> Reply:
    pods, query = _pods(call), call.parameters

    def key(pod: Pod) -> str:
        moment = pod.created_at if query["sort_by"] == "createdAt" else pod.terminated_at
        return "" if moment is None else moment.isoformat()

    rows = sorted(pods.ended(), key=key, reverse=query["sort_order"] == "desc")
    return Reply(offset_page(call, rows, pods.history))


async def get_pods_status(call: Call) -> Reply:
    pods = _pods(call)
    found = pods.find(call.parameters.get("pod_ids") or ())
    return Reply({"data": [pods.read_status(pod) for pod in found], "status": "success"})


async def get_pod(call: Call) -> Reply:
    pods = _pods(call)
    return Reply(pods.read(pods.get(call.parameters["pod_id"])))


async def delete_pod(call: Call) -> Reply:
    pods = _pods(call)
    pods.end(pods.get(call.parameters["pod_id"]), deleted=True)
    await call.core.saved()
    return Reply({"status": "TERMINATED"})


async def get_pod_log(call: Call) -> Reply:
    lines = _pods(call).get(call.parameters["pod_id"]).log()
    tail = call.parameters.get("tail")
    return Reply({"logs": lines if tail is None else lines[-tail:]})


def _pods(call: Call) -> PodRegistry:
    return call.core.rentals.pods


def owner_of(call: Call) -> Owner:
    """Return whose a rented thing is going to be, by the body of its create."""
    return Owner(call.core.user_id, (call.body.get("team") or {}).get("teamId"))


def offset_page(call: Call, items: Sequence[T], wire: Callable[[T], JsonObject]) -> JsonObject:
    """Return the part of a list that was asked for, with its count in both spellings."""
    offset, limit = call.parameters["offset"], call.parameters["limit"]
    return {
        "total_count": len(items),
        "totalCount": len(items),
        "offset": offset,
        "limit": limit,
        "data": [wire(item) for item in items[offset : offset + limit]],
    }


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_pods,
        create_pod,
        list_pod_history,
        get_pods_status,
        get_pod,
        delete_pod,
        get_pod_log,
    )
}
