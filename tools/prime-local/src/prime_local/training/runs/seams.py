"""What runs need of volumes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from prime_local.errors import PlatformError


class Volumes(Protocol):
    """The volumes that runs mount, one writer at a time."""

    def attach(self, name: str, team_id: str | None, run_id: str) -> None:
        """Take the writer's place, until `release`.

        Raises:
            PlatformError: 404, or 409 where somebody else has it.
        """

    def release(self, run_id: str) -> None:
        """Give the writer's place back, if the run has one."""

    async def write_file(self, run_id: str, key: str, pieces: Iterable[bytes]) -> None:
        """Save a file on the volume that a run has.

        Raises:
            OSError: it does not fit.
        """


class AnyVolumes:
    """Volumes of every name, whose files are dropped."""

    def __init__(self) -> None:
        self._writers: dict[tuple[str, str | None], str] = {}

    def attach(self, name: str, team_id: str | None, run_id: str) -> None:
        writer = self._writers.setdefault((name, team_id), run_id)
        if writer != run_id:
            raise PlatformError(409, f"volume {name!r} is attached read-write by a run ({writer})")

    def release(self, run_id: str) -> None:
        self._writers = {key: each for key, each in self._writers.items() if each != run_id}

    async def write_file(self, run_id: str, key: str, pieces: Iterable[bytes]) -> None:
        """Drop it."""
