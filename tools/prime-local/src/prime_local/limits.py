"""The limits: how many requests an operation takes, and what the account may have."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from prime_local.clock import PlatformClock
from prime_local.contract import Operation
from prime_local.contract.document import JsonObject
from prime_local.refusals import Refusals


class SlidingWindow:
    """At most `limit` events in any `seconds` of the platform clock."""

    def __init__(self, clock: PlatformClock, limit: int, seconds: float) -> None:
        self.limit = limit
        self._clock = clock
        self._seconds = seconds
        self._times: deque[float] = deque()

    def wait(self) -> float:
        """Return the seconds until one more event fits; 0 when it fits now."""
        now = self._clock.now()
        while self._times and self._times[0] <= now - self._seconds:
            self._times.popleft()
        if len(self._times) < self.limit:
            return 0.0
        return self._times[0] + self._seconds - now

    def record(self) -> None:
        self._times.append(self._clock.now())


@dataclass
class Resources:
    """What a sandbox takes from the account: whole vCPUs, GiB of memory and of disk."""

    cpu: float = 0.0
    memory: float = 0.0
    disk: float = 0.0


class RateLimits:
    """Counts the requests to operations that the contract gives an `x-rate-limit`.

    Args:
        clock: the platform clock; the windows slide on it.
        refusals: makes the errors.
        documented: enforce the limits of the documentation.
        older: enforce those that only an older description names.
    """

    def __init__(
        self, clock: PlatformClock, refusals: Refusals, *, documented: bool, older: bool
    ) -> None:
        self._clock = clock
        self._refusals = refusals
        self._documented = documented
        self._older = older
        self._windows: dict[tuple[str, ...], SlidingWindow] = {}

    def admit(self, operation: Operation, caller: str, sandbox_id: str) -> None:
        """Count a request, or refuse it.

        Args:
            operation: what is asked for.
            caller: the address, since there is one key here; each has limits of its own.
            sandbox_id: the sandbox it is about, for limits that hold for each.

        Raises:
            PlatformError: 429 with Retry-After.
        """
        limit = operation.spec.get("x-rate-limit")
        if limit is None:
            return
        older = limit.get("evidence") == "older-description"
        if not (self._older if older else self._documented):
            return
        key = (operation.id, caller, *([sandbox_id] if "sandbox" in limit["scope"] else []))
        window = self._windows.get(key)
        if window is None:
            window = SlidingWindow(self._clock, limit["requests"], limit["per_seconds"])
            self._windows[key] = window
        wait = window.wait()
        if wait > 0:
            raise self._refusals.rate(wait)
        window.record()


class CreationLimits:
    """Decides whether the account may create one more sandbox.

    Args:
        clock: the platform clock; the windows slide on it.
        refusals: makes the errors.
        account: the contract's `x-account-limits` of `create_sandbox`.
        enabled: False lets everything pass.
    """

    def __init__(
        self, clock: PlatformClock, refusals: Refusals, account: JsonObject, *, enabled: bool
    ) -> None:
        self._enabled = enabled
        self._refusals = refusals
        self._account = account
        burst = account["creation_burst"]
        self._burst = SlidingWindow(clock, burst["requests"], burst["per_seconds"])
        self._hour = SlidingWindow(clock, account["creations_per_hour"], 3600.0)
        self._active = 0
        self._used = Resources()

    def admit(self, wanted: Resources) -> None:
        """Count a creation, or refuse it.

        Raises:
            PlatformError: 429 with Retry-After for the creation burst; without it, and with the
                status that is assumed, for an account limit.
        """
        if self._enabled:
            self._check_account(wanted)
            wait = self._burst.wait()
            if wait > 0:
                raise self._refusals.rate(wait)
            self._burst.record()
            self._hour.record()
        self._active += 1
        self._used.cpu += wanted.cpu
        self._used.memory += wanted.memory
        self._used.disk += wanted.disk

    def release(self, held: Resources) -> None:
        """Give back what an ended sandbox held."""
        self._active -= 1
        self._used.cpu -= held.cpu
        self._used.memory -= held.memory
        self._used.disk -= held.disk

    def _check_account(self, wanted: Resources) -> None:
        used, account = self._used, self._account
        totals = (
            ("Active sandbox", self._active + 1, account["active_sandboxes"]),
            ("vCPU", used.cpu + wanted.cpu, account["vcpus"]),
            ("Memory", used.memory + wanted.memory, account["memory_gib"]),
            ("Storage", used.disk + wanted.disk, account["storage_gib"]),
        )
        for what, total, limit in totals:
            if total > limit:
                raise self._refusals.quota(what, limit)
        if self._hour.wait() > 0:
            raise self._refusals.quota("Hourly sandbox creation", self._hour.limit)
