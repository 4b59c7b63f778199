"""The documented limits on creating sandboxes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import quota_exceeded, rate_limited


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


class CreationLimits:
    """Decides whether the account may create one more sandbox.

    Args:
        clock: the platform clock; the windows slide on it.
        account: the contract's `x-account-limits` of `create_sandbox`.
        enabled: False lets everything pass.
    """

    def __init__(self, clock: PlatformClock, account: JsonObject, *, enabled: bool) -> None:
        self._enabled = enabled
        self._account = account
        burst = account["creation_burst"]
        self._burst = SlidingWindow(clock, burst["requests"], burst["per_seconds"])
        self._hour = SlidingWindow(clock, account["creations_per_hour"], 3600.0)
        self._active = 0
        self._used = Resources()

    def admit(self, wanted: Resources) -> None:
        """Count a creation, or refuse it.

        Raises:
            PlatformError: 429, with Retry-After when it is the creation burst.
        """
        if self._enabled:
            self._check_account(wanted)
            wait = self._burst.wait()
            if wait > 0:
                raise rate_limited(wait)
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
                raise quota_exceeded(what, limit)
        if self._hour.wait() > 0:
            raise quota_exceeded("Hourly sandbox creation", self._hour.limit)
