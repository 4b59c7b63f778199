"""Wheels and sources of environments, and the store that they are put to."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.environments.record import SHORTEST_HASH, Artifact
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

ARTIFACTS = "environment_artifact"
CONTENTS = "environment_content"


class EnvironmentFiles:
    """The files of all environments, in memory; with a data directory they outlive the platform.

    Args:
        clock: dates them.
        identifiers: makes ids.
        storage: keeps them.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, storage: Storage) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._artifacts: dict[str, Artifact] = {}
        self._contents: dict[str, bytes] = {}

    def take_over(
        self, artifacts: Iterable[Mapping[str, Any]], contents: Iterable[Mapping[str, Any]]
    ) -> None:
        """Take over what an earlier platform kept."""
        for row in artifacts:
            self._artifacts[row["id"]] = Artifact(**row)
        for row in contents:
            self._contents[row["id"]] = base64.b64decode(row["data"])

    def versions(self, environment_id: str) -> list[Artifact]:
        """Return the published sources of an environment, newest first."""
        return [
            each
            for each in reversed(self._artifacts.values())
            if each.environment_id == environment_id and each.kind == "source" and each.complete
        ]

    def version(self, environment_id: str, named: str) -> Artifact:
        """Return a version by ``latest``, its number or the beginning of its hash.

        Raises:
            PlatformError: 404.
        """
        for each in self.versions(environment_id):
            by_hash = len(named) >= SHORTEST_HASH and each.content_hash.startswith(named)
            if named in ("latest", each.asked.get("semantic_version")) or by_hash:
                return each
        raise PlatformError(404, "Version not found")

    def wheel(self, version: Artifact) -> Artifact | None:
        """Return the wheel of a version."""
        return next(
            (
                each
                for each in self._artifacts.values()
                if each.kind == "wheel"
                and each.complete
                and each.environment_id == version.environment_id
                and each.content_hash == version.content_hash
            ),
            None,
        )

    def announce(self, kind: str, environment_id: str, asked: JsonObject) -> Artifact:
        """Note that a file is to come; one that was announced and not confirmed is announced anew.

        Raises:
            PlatformError: 409 when the same content is published.
        """
        for each in self.versions(environment_id):
            if each.content_hash == asked["content_hash"]:
                raise PlatformError(409, "This content hash exists already")
        made = Artifact(
            self._identifiers.make("c", 24),
            kind,
            environment_id,
            asked,
            self._identifiers.make("", 32),
            wire_date(self._clock.date()),
        )
        self._keep(made)
        return made

    def get(self, kind: str, environment_id: str, artifact_id: str) -> Artifact:
        """Return what was announced.

        Raises:
            PlatformError: 404.
        """
        found = self._artifacts.get(artifact_id)
        if found is None or (found.kind, found.environment_id) != (kind, environment_id):
            raise PlatformError(404, "Nothing of this id was announced")
        return found

    def put(self, artifact_id: str, signature: str, data: bytes) -> None:
        """Take a file.

        Raises:
            PlatformError: 403 when the address is wrong or used up.
        """
        found = self._artifacts.get(artifact_id)
        if found is None or found.signature != signature or found.complete:
            raise PlatformError(403, "The URL has expired, or is wrong")
        self._store(artifact_id, data)

    def content(self, artifact_id: str) -> bytes:
        """Return a file.

        Raises:
            PlatformError: 404.
        """
        if artifact_id not in self._contents:
            raise PlatformError(404, "There is no such file")
        return self._contents[artifact_id]

    def find(self, artifact_id: str) -> Artifact:
        """Return an artifact, whosever it is.

        Raises:
            PlatformError: 404.
        """
        if artifact_id not in self._artifacts:
            raise PlatformError(404, "There is no such file")
        return self._artifacts[artifact_id]

    def confirm(self, artifact: Artifact) -> str | None:
        """Confirm an upload; the text tells why that is not possible."""
        data = self._contents.get(artifact.id)
        if data is None:
            return "The file has not been uploaded"
        if hashlib.sha256(data).hexdigest() != artifact.asked["sha256"]:
            return "The file is not the one that was announced"
        artifact.complete = True
        self._keep(artifact)
        return None

    def copy(self, source_id: str, target_id: str) -> str | None:
        """Give an environment the files of another; returns its newest version."""
        newest = None
        for each in list(self._artifacts.values()):
            if each.environment_id == source_id and each.complete:
                made_id = self._identifiers.make("c", 24)
                self._keep(Artifact(**{**asdict(each), "id": made_id, "environment_id": target_id}))
                self._store(made_id, self._contents[each.id])
                newest = made_id if each.kind == "source" else newest
        return newest

    def delete(self, artifacts: Iterable[Artifact]) -> None:
        """Delete files."""
        for each in artifacts:
            del self._artifacts[each.id]
            self._contents.pop(each.id, None)
            self._storage.save_object(ARTIFACTS, each.id, None)
            self._storage.save_object(CONTENTS, each.id, None)

    def delete_version(self, version: Artifact) -> None:
        """Delete a version and its wheel."""
        wheel = self.wheel(version)
        self.delete([version] if wheel is None else [version, wheel])

    def delete_all_of(self, environment_id: str) -> None:
        """Delete the files of an environment."""
        self.delete(
            [each for each in self._artifacts.values() if each.environment_id == environment_id]
        )

    def _keep(self, artifact: Artifact) -> None:
        self._artifacts[artifact.id] = artifact
        self._storage.save_object(ARTIFACTS, artifact.id, asdict(artifact))

    def _store(self, artifact_id: str, data: bytes) -> None:
        self._contents[artifact_id] = data
        text = base64.b64encode(data).decode()
        self._storage.save_object(CONTENTS, artifact_id, {"id": artifact_id, "data": text})
