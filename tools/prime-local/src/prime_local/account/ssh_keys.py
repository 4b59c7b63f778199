"""SSH public keys of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError, invalid
from prime_local.identifiers import Identifiers
from prime_local.rows import from_row, to_row
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

KIND = "ssh_key"


@dataclass
class SshKey:
    id: str
    user_id: str
    name: str
    public_key: str
    primary: bool
    created_at: datetime
    updated_at: datetime

    def to_wire(self) -> JsonObject:
        """Return the `SshKey` object of the contract."""
        return {
            "id": self.id,
            "userId": self.user_id,
            "name": self.name,
            "publicKey": self.public_key,
            "isPrimary": self.primary,
            "isUserKey": True,
            "createdAt": wire_date(self.created_at),
            "updatedAt": wire_date(self.updated_at),
        }


class SshKeys:
    """Every key, oldest first.

    Args:
        clock: the platform's.
        identifiers: makes ids.
        storage: keeps them.
        user_id: whose they are.
    """

    def __init__(
        self, clock: PlatformClock, identifiers: Identifiers, storage: Storage, user_id: str
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._user_id = user_id
        self._keys: dict[str, SshKey] = {}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the keys of an earlier platform."""
        self._keys = {row["id"]: from_row(SshKey, row) for row in rows}

    def all(self) -> list[SshKey]:
        return list(self._keys.values())

    def add(self, name: str, public_key: str) -> SshKey:
        """Keep a key; a new one becomes the primary one.

        Raises:
            PlatformError: 422.
        """
        line = public_key.strip()
        if len(line.split()) < 2 or "\n" in line or "PRIVATE KEY" in line:
            raise invalid([Problem(("body", "publicKey"), "Not an OpenSSH public key", "value")])
        now = self._clock.date()
        key_id = self._identifiers.make("sshkey_")
        key = SshKey(key_id, self._user_id, name, line, False, now, now)
        self._keys[key.id] = key
        self.make_primary(key.id)
        return key

    def make_primary(self, key_id: str) -> None:
        """Make one key the primary one.

        Raises:
            PlatformError: 404.
        """
        chosen = self._get(key_id)
        for key in self._keys.values():
            if key.primary != (key is chosen):
                key.primary = key is chosen
                key.updated_at = self._clock.date()
                self._storage.save_object(KIND, key.id, to_row(key))

    def delete(self, key_id: str) -> None:
        """Forget a key.

        Raises:
            PlatformError: 404.
        """
        del self._keys[self._get(key_id).id]
        self._storage.save_object(KIND, key_id, None)

    def _get(self, key_id: str) -> SshKey:
        key = self._keys.get(key_id)
        if key is None:
            raise PlatformError(404, "SSH key not found")
        return key
