"""Network rules: what callers may ask for, joins still to come, and waiting for their effect."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, PollTimeout
from prime_sandboxes.errors import LanMembershipError, NetworkSyncTimeoutError
from prime_sandboxes.models import (
    EgressPolicyStatus,
    LanNetwork,
    LanRule,
    SetEgressPolicyRequest,
)
from prime_sandboxes.waiting import is_transient

__all__ = [
    "PendingJoin",
    "PendingJoins",
    "egress_request",
    "per_loop_schedule",
    "same_rules",
    "wait_until_applied",
    "wait_until_joined",
]

logger = logging.getLogger("prime_sandboxes")

V = TypeVar("V")
# A state, and the loop time at which it was asked for.
Look: TypeAlias = tuple[float, V]

# Far above what an account can run at once, so that only sandboxes nobody waits for are dropped.
MOST_JOINS = 10_000


@dataclass(frozen=True)
class PendingJoin:
    """A network that a sandbox shall join once it runs."""

    network_id: str
    tags: list[str] | None


class PendingJoins(dict[str, PendingJoin]):
    """The joins still to come, by sandbox; the oldest of very many are dropped with a warning."""

    def note(self, sandbox_id: str, join: PendingJoin) -> None:
        self[sandbox_id] = join
        if len(self) > MOST_JOINS:
            oldest = next(iter(self))
            self.pop(oldest, None)
            logger.warning("forgot that %s was to join a network; nobody waited for it", oldest)


def egress_request(
    allow: Sequence[str] | None, deny: Sequence[str] | None
) -> SetEgressPolicyRequest:
    """The request that `set_network` stands for; `["*"]` is everything.

    Raises:
        ValueError: not exactly one list, an empty one, or an entry that is none.
    """
    for name, entries in (("allow", allow), ("deny", deny)):
        if isinstance(entries, str):
            raise ValueError(f"{name} is a list of entries, not one string")
        if entries is not None and not entries:
            raise ValueError(f"{name} is empty; use ['*'] to {name} everything")
        if entries is not None and "*" in entries and len(entries) > 1:
            raise ValueError(f"'*' must be the only entry of {name}")
    if (allow is None) == (deny is None):
        raise ValueError("give exactly one of allow and deny")
    if allow is not None:
        if list(allow) == ["*"]:
            return SetEgressPolicyRequest(denylist=[])
        return SetEgressPolicyRequest(allowlist=list(allow))
    blocked = list(deny or ())
    if blocked == ["*"]:
        return SetEgressPolicyRequest(allowlist=[])
    return SetEgressPolicyRequest(denylist=blocked)


def same_rules(one: Sequence[LanRule], other: Sequence[LanRule]) -> bool:
    """Whether two lists allow the same, whatever the order of rules and ports."""
    return set(map(_meaning, one)) == set(map(_meaning, other))


def _meaning(rule: LanRule) -> tuple[str, str, frozenset[int] | None]:
    return rule.from_, rule.to, None if rule.ports is None else frozenset(rule.ports)


def per_loop_schedule(
    read: Callable[[str], Awaitable[V]],
) -> PerLoop[PollSchedule[str, Look[V]]]:
    """Poll schedules that read one object at a time; those who wait for one share its reads."""

    async def fetch(keys: list[str]) -> Mapping[str, Look[V] | Exception]:
        (key,) = keys
        asked = asyncio.get_running_loop().time()
        return {key: (asked, await read(key))}

    return PerLoop(lambda: PollSchedule(fetch, transient=is_transient, batch=1))


async def wait_until_applied(
    schedule: PollSchedule[str, Look[EgressPolicyStatus]], sandbox_id: str, timeout: float
) -> EgressPolicyStatus:
    """Waits until the saved outbound rules of a sandbox are in force.

    Raises:
        NetworkSyncTimeoutError: not in time.
    """
    began = asyncio.get_running_loop().time()

    def applied(look: Look[EgressPolicyStatus]) -> bool:
        asked, status = look
        return asked >= began and status.applied

    try:
        return (await schedule.wait(sandbox_id, applied, began + timeout))[1]
    except PollTimeout as late:
        raise NetworkSyncTimeoutError(
            f"The outbound rules of sandbox {sandbox_id} are saved, but were not in force within "
            f"{timeout:g} s; wait again"
        ) from late.last_error


async def wait_until_joined(
    schedule: PollSchedule[str, Look[LanNetwork]], sandbox_id: str, network_id: str, timeout: float
) -> None:
    """Waits until a member of a network, and the network's rules, are in force.

    Raises:
        LanMembershipError: it is no member any more.
        NetworkSyncTimeoutError: not in time.
    """
    began = asyncio.get_running_loop().time()

    def joined(look: Look[LanNetwork]) -> bool:
        asked, network = look
        if asked < began:
            return False  # another's question, from before this sandbox was a member
        for member in network.members or ():
            if member.sandbox_id == sandbox_id:
                return member.synced and network.synced
        raise LanMembershipError(sandbox_id, network_id)

    try:
        await schedule.wait(network_id, joined, began + timeout)
    except PollTimeout as late:
        raise NetworkSyncTimeoutError(
            f"Sandbox {sandbox_id} is a member of the network {network_id}, but that was not in "
            f"force within {timeout:g} s; wait again"
        ) from late.last_error
