"""Parquet files of external runs' samples, and the presigned addresses that they are put to."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.storage import Storage

KIND = "external_run_samples"
CONTENT_TYPE = "application/parquet"
_LIFETIME_SECONDS = 900.0
_MAGIC = b"PAR1"


@dataclass
class SampleFile:
    """The samples of a step.

    Args:
        key: what the store calls it.
        run_id: the run.
        step: the step.
        data: what was put, in base64; None before that.
        confirmed: whether the run has said that it is all there.
    """

    key: str
    run_id: str
    step: int
    data: str | None = None
    confirmed: bool = False

    @property
    def content(self) -> bytes | None:
        return None if self.data is None else base64.b64decode(self.data)

    def to_state(self) -> JsonObject:
        """Return what a test is told."""
        content = self.content
        return {
            "run_id": self.run_id,
            "step": self.step,
            "s3_key": self.key,
            "confirmed": self.confirmed,
            "size": None if content is None else len(content),
            "sha256": None if content is None else hashlib.sha256(content).hexdigest(),
        }


class SampleFiles:
    """The files of all external runs.

    Args:
        clock: ends the addresses' lives.
        identifiers: makes their signatures.
        storage: keeps the files.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, storage: Storage) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._files: dict[str, SampleFile] = {}
        # By signature: the file, and until when it may be put.
        self._addresses: dict[str, tuple[SampleFile, float]] = {}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take over what an earlier platform kept."""
        for row in rows:
            self._files[row["key"]] = SampleFile(**row)

    def all(self) -> list[SampleFile]:
        """Return every file, those that are still to be put too."""
        return list(self._files.values())

    def announce(self, run_id: str, step: int) -> tuple[SampleFile, str]:
        """Return the file of a step, and a signature with which it can be put."""
        key = f"rft/{run_id}/step_{step}/part-0.parquet"
        found = self._files.setdefault(key, SampleFile(key, run_id, step))
        signature = self._identifiers.make("", 32)
        self._addresses[signature] = found, self._clock.now() + _LIFETIME_SECONDS
        self._save(found)
        return found, signature

    def put(self, key: str, signature: str, content_type: str, data: bytes) -> None:
        """Take a file; one that is there already is replaced.

        Raises:
            PlatformError: 403, the address or the type is not what was signed.
        """
        found, ends = self._addresses.get(signature, (None, 0.0))
        if found is None or found.key != key or self._clock.now() >= ends:
            raise PlatformError(403, "The URL has expired, or is wrong")
        if content_type != CONTENT_TYPE:
            raise PlatformError(403, f"Content-Type is {content_type}, not {CONTENT_TYPE}")
        found.data, found.confirmed = base64.b64encode(data).decode(), False
        self._save(found)

    def confirm(self, run_id: str, step: int, key: str) -> None:
        """Note that a file is all there.

        Raises:
            PlatformError: 400, it is not.
        """
        found = self._files.get(key)
        if found is None or (found.run_id, found.step) != (run_id, step):
            raise PlatformError(400, f"{key} is no file of this step")
        content = found.content
        if content is None:
            raise PlatformError(400, f"{key} has not been uploaded")
        if len(content) <= 2 * len(_MAGIC) or {content[:4], content[-4:]} != {_MAGIC}:
            raise PlatformError(400, f"{key} is no Parquet file")
        found.confirmed = True
        self._save(found)

    def _save(self, found: SampleFile) -> None:
        self._storage.save_object(KIND, found.key, asdict(found))
