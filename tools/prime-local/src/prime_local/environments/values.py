"""Secrets and variables of environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.environments.record import Value
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

VALUES = "environment_value"


class EnvironmentValues:
    """The secrets and variables of all environments.

    Args:
        clock: dates them.
        identifiers: makes ids.
        storage: keeps them.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, storage: Storage) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._values: dict[str, Value] = {}

    def take_over(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Take over what an earlier platform kept."""
        for row in stored:
            self._values[row["id"]] = Value(**row)

    def all_of(self, kind: str, environment_id: str) -> list[Value]:
        """Return the secrets or the variables of an environment, oldest first."""
        return [
            each
            for each in self._values.values()
            if (each.kind, each.environment_id) == (kind, environment_id)
        ]

    def create(
        self, kind: str, environment_id: str, asked: JsonObject, link: str | None = None
    ) -> Value:
        """Make a secret or a variable.

        Raises:
            PlatformError: 409 when the name is taken.
        """
        self._check_name(kind, environment_id, asked["name"])
        now = wire_date(self._clock.date())
        made = Value(
            self._identifiers.make("c", 24),
            kind,
            environment_id,
            asked["name"],
            asked["value"],
            asked.get("description"),
            now,
            now,
            link,
        )
        self._keep(made)
        return made

    def link(self, environment_id: str, global_secret_id: str, name: str) -> Value:
        """Link a secret of the account.

        Raises:
            PlatformError: 409 when its name is taken.
        """
        asked = {"name": name, "value": ""}
        return self.create("secret", environment_id, asked, link=global_secret_id)

    def unlink(self, environment_id: str, global_secret_id: str) -> None:
        """End a link.

        Raises:
            PlatformError: 404.
        """
        for each in self.all_of("secret", environment_id):
            if each.link == global_secret_id:
                self._drop(each)
                return
        raise PlatformError(404, "The secret is not linked")

    def get(self, kind: str, environment_id: str, value_id: str) -> Value:
        """Return a secret of the environment's own, or a variable.

        Raises:
            PlatformError: 404.
        """
        found = self._values.get(value_id)
        known = found is not None and (found.kind, found.environment_id) == (kind, environment_id)
        if found is None or not known or found.link is not None:
            raise PlatformError(404, f"There is no such {kind}")
        return found

    def update(self, value: Value, asked: JsonObject) -> None:
        """Change a secret or a variable.

        Raises:
            PlatformError: 400 when nothing is to change, 409 when the name is taken.
        """
        given = {name: asked[name] for name in ("name", "value", "description") if name in asked}
        if not given:
            raise PlatformError(400, "Nothing to change")
        if given.get("name", value.name) != value.name:
            self._check_name(value.kind, value.environment_id, given["name"])
        for name, text in given.items():
            setattr(value, name, text)
        value.updated_at = wire_date(self._clock.date())
        self._keep(value)

    def delete(self, value: Value) -> None:
        """Delete a secret or a variable."""
        self._drop(value)

    def delete_all_of(self, environment_id: str) -> None:
        """Delete the secrets and variables of an environment."""
        for each in list(self._values.values()):
            if each.environment_id == environment_id:
                self._drop(each)

    def _check_name(self, kind: str, environment_id: str, name: str) -> None:
        if any(each.name == name for each in self.all_of(kind, environment_id)):
            raise PlatformError(409, f"There is a {kind} of this name")

    def _keep(self, value: Value) -> None:
        self._values[value.id] = value
        self._storage.save_object(VALUES, value.id, asdict(value))

    def _drop(self, value: Value) -> None:
        del self._values[value.id]
        self._storage.save_object(VALUES, value.id, None)
