"""Secrets of the caller and of teams. Their values are checked, and not kept."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.rows import from_row, to_row
from prime_local.sandboxes.record import Owner, wire_date
from prime_local.storage import Storage

KIND = "secret"
_MAX_FILE = 64 * 1024


@dataclass
class StoredSecret:
    id: str
    name: str
    description: str | None
    is_file: bool
    user_id: str
    team_id: str | None
    created_at: datetime
    updated_at: datetime

    def to_wire(self) -> JsonObject:
        """Return the `Secret` object of the contract."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "isFile": self.is_file,
            "userId": self.user_id,
            "teamId": self.team_id,
            "createdAt": wire_date(self.created_at),
            "updatedAt": wire_date(self.updated_at),
        }


class Secrets:
    """Every secret, oldest first.

    Args:
        clock: the platform's.
        identifiers: makes ids.
        storage: keeps them.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, storage: Storage) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._secrets: dict[str, StoredSecret] = {}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the secrets of an earlier platform."""
        self._secrets = {row["id"]: from_row(StoredSecret, row) for row in rows}

    def select(self, team_id: str | None) -> list[StoredSecret]:
        """Return the secrets of a team, or the caller's own."""
        return [secret for secret in self._secrets.values() if secret.team_id == team_id]

    def create(self, body: JsonObject, owner: Owner) -> StoredSecret:
        """Keep a secret.

        Raises:
            PlatformError: 400 or 409.
        """
        is_file = body.get("isFile", False)
        _check_value(body["value"], is_file)
        self._check_name(body["name"], owner.team_id)
        now = self._clock.date()
        secret = StoredSecret(
            id=self._identifiers.make("sec_"),
            name=body["name"],
            description=body.get("description"),
            is_file=is_file,
            user_id=owner.user_id,
            team_id=owner.team_id,
            created_at=now,
            updated_at=now,
        )
        self._secrets[secret.id] = secret
        self._storage.save_object(KIND, secret.id, to_row(secret))
        return secret

    def get(self, secret_id: str, team_id: str | None) -> StoredSecret:
        """Return a secret of a team, or of the caller's own.

        Raises:
            PlatformError: 404.
        """
        secret = self._secrets.get(secret_id)
        if secret is None or secret.team_id != team_id:
            raise PlatformError(404, "Secret not found")
        return secret

    def update(self, secret: StoredSecret, body: JsonObject) -> None:
        """Change what a body names.

        Raises:
            PlatformError: 400 or 409.
        """
        if body.get("value") is not None:
            _check_value(body["value"], secret.is_file)
        name = body.get("name")
        if name is not None and name != secret.name:
            self._check_name(name, secret.team_id)
            secret.name = name
        if "description" in body:
            secret.description = body["description"] or None
        secret.updated_at = self._clock.date()
        self._storage.save_object(KIND, secret.id, to_row(secret))

    def delete(self, secret: StoredSecret) -> None:
        del self._secrets[secret.id]
        self._storage.save_object(KIND, secret.id, None)

    def _check_name(self, name: str, team_id: str | None) -> None:
        if any(secret.name == name for secret in self.select(team_id)):
            raise PlatformError(409, "A secret with this name already exists")


def _check_value(value: str, is_file: bool) -> None:
    if not is_file:
        return
    try:
        size = len(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        raise PlatformError(400, "The value of a file must be base64") from None
    if size > _MAX_FILE:
        raise PlatformError(400, "A file secret holds at most 64 KB")
