"""API keys: the platform's own, those that logins make, and those that a test adds."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.rows import from_row, to_row
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

KIND = "api_key"
KEY_LIMITS = {
    "maxConcurrentSandboxes": "max_concurrent_sandboxes",
    "maxSandboxCreationsPerHour": "max_sandbox_creations_per_hour",
    "maxSandboxCpuCores": "max_sandbox_cpu_cores",
    "maxSandboxGpuCount": "max_sandbox_gpu_count",
    "maxConcurrentTunnels": "max_concurrent_tunnels",
    "maxTunnelCreationsPerHour": "max_tunnel_creations_per_hour",
    "maxTunnelTtlHours": "max_tunnel_ttl_hours",
}
_SCOPES = (
    "availability",
    "disks",
    "factory",
    "inference",
    "instances",
    "slurm_clusters",
    "teams",
    "traces",
)


@dataclass
class ApiKey:
    """An API key, by its digest.

    Args:
        scopes: `read` and `write` by area; None is everything.
        limits: under the names of whoami.
    """

    id: str
    name: str
    digest: str
    created_at: datetime
    expires_at: datetime | None
    scopes: dict[str, dict[str, bool]] | None
    limits: dict[str, int]
    disabled: bool = False

    def permissions(self) -> JsonObject:
        """Return the `scope` of whoami."""
        every = {"read": True, "write": True}
        return {name: every if self.scopes is None else self.scopes.get(name) for name in _SCOPES}

    def check(self, permission: JsonObject) -> None:
        """Refuse what the key may not do.

        Args:
            permission: the contract's `x-permission`.

        Raises:
            PlatformError: 401 or 403, as far as each is documented.
        """
        named = permission.get("scope") or permission.get("label", "").lower().replace(" ", "_")
        if self.scopes is None or not named:
            return
        if not self.scopes.get(named, {}).get(permission["access"]):
            status = 403 if "scope" in permission else 401
            raise PlatformError(
                status,
                f"The API key lacks {named}:{permission['access']}",
                code="unauthenticated" if status == 401 else "forbidden",
            )

    def to_wire(self) -> JsonObject:
        """Return the `ApiToken` object of the contract, with fields of our own."""
        return {
            "id": self.id,
            "name": self.name,
            "createdAt": wire_date(self.created_at),
            "expiresAt": self.expires_at and wire_date(self.expires_at),
            "isDisabled": self.disabled,
        }


class ApiKeys:
    """Every API key, the platform's own first.

    Args:
        clock: ends them.
        identifiers: makes them.
        storage: keeps their digests.
        own: the key that the platform tells on its start.
    """

    def __init__(
        self, clock: PlatformClock, identifiers: Identifiers, storage: Storage, own: str
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        digest = _digest(own)
        self._own = own.encode()
        self._first = ApiKey(f"tok_{digest[:20]}", "local", digest, clock.date(), None, None, {})
        self._keys = {self._first.id: self._first}
        self._by_digest = {digest: self._first}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the keys of an earlier platform."""
        for row in rows:
            key = from_row(ApiKey, row)
            if key.id == self._first.id:
                self._first.disabled = key.disabled
            else:
                self._remember(key)

    def all(self) -> list[ApiKey]:
        """Return the keys, oldest first."""
        return list(self._keys.values())

    def make(
        self,
        name: str,
        *,
        scopes: dict[str, dict[str, bool]] | None = None,
        limits: Mapping[str, int] | None = None,
        lifetime: float | None = None,
    ) -> str:
        """Make a key and return its value, which is shown this once.

        Args:
            name: for people.
            scopes: as for `ApiKey`.
            limits: under the names of the login's request.
            lifetime: seconds on the platform clock.

        Raises:
            ValueError: a limit that there is not.
        """
        unknown = set(limits or {}) - KEY_LIMITS.keys()
        if unknown:
            raise ValueError(f"no limits of a key: {', '.join(sorted(unknown))}")
        value = self._identifiers.make("pit_", 40)
        now = self._clock.date()
        key = ApiKey(
            id=self._identifiers.make("tok_"),
            name=name,
            digest=_digest(value),
            created_at=now,
            expires_at=None if lifetime is None else now + timedelta(seconds=lifetime),
            scopes=scopes,
            limits={KEY_LIMITS[limit]: most for limit, most in (limits or {}).items()},
        )
        self._remember(key)
        self._save(key)
        return value

    def find(self, value: str) -> ApiKey | None:
        """Return the key of a value, if it is one that works now."""
        if hmac.compare_digest(value.encode("utf-8", "surrogateescape"), self._own):
            key: ApiKey | None = self._by_digest.get(self._first.digest)
        else:
            key = self._by_digest.get(_digest(value))
        if key is None or key.disabled:
            return None
        expired = key.expires_at is not None and key.expires_at <= self._clock.date()
        return None if expired else key

    def disable(self, key_id: str) -> None:
        """Switch a key off.

        Raises:
            PlatformError: 404.
        """
        key = self._get(key_id)
        key.disabled = True
        self._save(key)

    def delete(self, key_id: str) -> None:
        """Remove a key; the platform's own is there again after a restart.

        Raises:
            PlatformError: 404.
        """
        key = self._get(key_id)
        del self._keys[key.id]
        del self._by_digest[key.digest]
        self._storage.save_object(KIND, key.id, None)

    def _get(self, key_id: str) -> ApiKey:
        key = self._keys.get(key_id)
        if key is None:
            raise PlatformError(404, "Token not found")
        return key

    def _remember(self, key: ApiKey) -> None:
        self._keys[key.id] = key
        self._by_digest[key.digest] = key

    def _save(self, key: ApiKey) -> None:
        self._storage.save_object(KIND, key.id, to_row(key))


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
