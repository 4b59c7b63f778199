"""All environments of a platform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.environments.files import EnvironmentFiles
from prime_local.environments.values import EnvironmentValues
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

KIND = "environment"
# What a caller finds published by others.
_PUBLISHER = "primeintellect"
_PUBLISHED = ("alphabet-sort", "gsm8k", "reverse-text", "wordle")
_PUBLISHED_SINCE = "2026-01-01T00:00:00.000Z"
_ID_LENGTH = 24


@dataclass(frozen=True)
class Environment:
    """An environment; its owner is a slug."""

    id: str
    owner: str
    owner_type: str
    name: str
    visibility: str
    created_at: str

    def identity(self) -> JsonObject:
        """Return the `ResolvedEnvironment` object of the contract."""
        return {"id": self.id, "owner": {"name": self.owner, "type": self.owner_type}}

    def to_wire(self) -> JsonObject:
        """Return the `HubDetail` object of the contract."""
        return {
            **self.identity(),
            "name": self.name,
            "visibility": self.visibility,
            "semantic_version": "0.1.0",
            "url_dependencies": [],
        }


class EnvironmentRegistry:
    """Every environment since the last reset.

    Args:
        clock: dates new ones.
        identifiers: makes their ids.
        storage: keeps them.
        user_slug: owner of the caller's own.

    Attributes:
        files: their wheels and sources.
        values: their secrets and variables.
    """

    def __init__(
        self, clock: PlatformClock, identifiers: Identifiers, storage: Storage, user_slug: str
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._user_slug = user_slug
        self.files = EnvironmentFiles(clock, identifiers, storage)
        self.values = EnvironmentValues(clock, identifiers, storage)
        self._environments: dict[str, Environment] = {}
        for name in _PUBLISHED:
            # The same id on each platform: nothing of them is kept.
            environment_id = f"cpublished{name.replace('-', '')}".ljust(_ID_LENGTH + 1, "0")
            self._environments[environment_id] = Environment(
                environment_id, _PUBLISHER, "team", name, "PUBLIC", _PUBLISHED_SINCE
            )

    def take_over(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Take over what an earlier platform kept."""
        for kept in stored:
            environment = Environment(**kept)
            self._environments[environment.id] = environment

    def resolve(self, asked: JsonObject) -> tuple[Environment, bool]:
        """Return the environment of a name in the caller's scope, made if there is none.

        Args:
            asked: a `ResolveEnvironmentRequest` of the contract.
        """
        team = asked.get("team_slug") or asked.get("team_id")
        owner = asked.get("owner_slug") or team or self._user_slug
        found = self._find(owner, asked["name"])
        if found is not None:
            return found, False
        made = Environment(
            self._identifiers.make("c", _ID_LENGTH),
            owner,
            "user" if owner == self._user_slug else "team",
            asked["name"],
            asked.get("visibility", "PRIVATE"),
            wire_date(self._clock.date()),
        )
        self._environments[made.id] = made
        self._storage.save_object(KIND, made.id, asdict(made))
        return made, True

    def select(self, asked: JsonObject, *, private: bool) -> list[Environment]:
        """Return the environments that a list asks for.

        Args:
            asked: the query of the list.
            private: whether the caller sees private ones, too.
        """
        found = [each for each in self._environments.values() if self._wanted(each, asked)]
        if not private:
            found = [each for each in found if each.visibility == "PUBLIC"]
        by_name = asked["sort_by"] == "name"
        found.sort(
            key=lambda each: (each.name, each.owner) if by_name else (each.created_at, each.name),
            reverse=asked["sort_order"] == "desc",
        )
        return found

    def _wanted(self, each: Environment, asked: JsonObject) -> bool:
        versions = self.files.versions(each.id)
        about = versions[0].asked["metadata"] if versions else {}
        text = f"{each.name} {about.get('description', '')}".lower()
        return (
            asked.get("owner") in (None, each.owner)
            and asked.get("visibility") in (None, each.visibility)
            and asked.get("search", "").lower() in text
            and set(asked.get("tags") or ()) <= set(about.get("tags", ()))
            and not asked.get("starred_only")
            and (not asked.get("mine_only") or each.owner == self._user_slug)
        )

    def check_owned(self, environment: Environment) -> None:
        """Check that the caller may change an environment.

        Raises:
            PlatformError: 403.
        """
        if environment.owner == _PUBLISHER:
            raise PlatformError(403, "The environment belongs to somebody else")

    def delete(self, environment: Environment) -> None:
        """Delete an environment with all that it holds."""
        self.files.delete_all_of(environment.id)
        self.values.delete_all_of(environment.id)
        del self._environments[environment.id]
        self._storage.save_object(KIND, environment.id, None)

    def by_slug(self, owner: str, name: str) -> Environment:
        """Return an environment.

        Raises:
            PlatformError: 404.
        """
        return self._known(self._find(owner, name))

    def by_id(self, environment_id: str) -> Environment:
        """Return an environment.

        Raises:
            PlatformError: 404.
        """
        return self._known(self._environments.get(environment_id))

    def ids_of(self, name: str) -> set[str]:
        """Return the ids of the environments of a name, or of a slug."""
        owner, _, short = name.rpartition("/")
        return {
            each.id
            for each in self._environments.values()
            if each.name == short and owner in ("", each.owner)
        }

    def _find(self, owner: str, name: str) -> Environment | None:
        every = self._environments.values()
        return next((each for each in every if (each.owner, each.name) == (owner, name)), None)

    @staticmethod
    def _known(found: Environment | None) -> Environment:
        if found is None:
            raise PlatformError(404, "Environment not found")
        return found
