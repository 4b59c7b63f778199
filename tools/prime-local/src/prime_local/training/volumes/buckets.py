"""Copies between volumes and buckets: real ones, of buckets that this platform has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.rows import from_row, to_row
from prime_local.s3.errors import S3Error
from prime_local.s3.records import StoredObject
from prime_local.s3.service import VOLUMES_BUCKET, S3Service
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage
from prime_local.training.volumes.record import TrainingVolume

KIND = "bucket_transfer"
_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")
_LIVE = ("queued", "running")


@dataclass
class BucketTransfer:
    """A copy.

    Args:
        path: directory on the volume, whose contents are copied.
        started_at: when it became running.
        completed_at: when it ended.
    """

    id: str
    volume_id: str
    volume_name: str
    direction: str
    path: str
    url: str
    created_at: datetime
    status: str = "queued"
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True)
class _Place:
    """Where objects are: in a bucket, under a prefix."""

    bucket: str
    prefix: str


class BucketTransfers:
    """Every copy.

    Args:
        clock: moves them.
        identifiers: makes their ids.
        storage: keeps them, without the keys to the buckets.
        s3: the buckets.
        step: seconds that each copy is queued, and running.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        s3: S3Service,
        step: float,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._s3 = s3
        self._step = step
        self._transfers: dict[str, BucketTransfer] = {}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remember the copies of an earlier platform; those that were under way have failed."""
        self._transfers = {row["id"]: from_row(BucketTransfer, row) for row in rows}
        for transfer in self._transfers.values():
            if transfer.status in _LIVE:
                self._end(transfer, "failed", "The local platform was restarted")

    def create(self, volume: TrainingVolume, asked: JsonObject, own: str) -> BucketTransfer:
        """Queue a copy.

        Args:
            volume: one end.
            asked: the `CreateBucketTransferRequest` of the contract, its path cleaned.
            own: address of the buckets that can be reached.

        Raises:
            PlatformError: 400.
        """
        url = _URL.fullmatch(asked["url"])
        if url is None:
            raise PlatformError(400, "url is s3://bucket/prefix")
        transfer = BucketTransfer(
            self._identifiers.make("cmn", 22),
            volume.id,
            volume.name,
            asked["direction"],
            asked["path"],
            asked["url"],
            self._clock.date(),
        )
        self._transfers[transfer.id] = transfer
        self._save(transfer)
        on_volume = _Place(VOLUMES_BUCKET, _folder(volume.prefix + asked["path"]))
        in_bucket = _Place(url[1], _folder(url[2] or ""))
        obstacle = self._obstacle(asked, in_bucket, own)
        ends = (in_bucket, on_volume) if asked["direction"] == "import" else (on_volume, in_bucket)
        self._clock.call_later(self._step, partial(self._start, transfer, *ends, obstacle))
        return transfer

    def of(self, volume_id: str) -> list[BucketTransfer]:
        """Return the copies of a volume, newest first."""
        found = (each for each in self._transfers.values() if each.volume_id == volume_id)
        return list(found)[::-1]

    def importing(self, volume_id: str) -> bool:
        """Whether a copy is going to write to a volume."""
        return any(
            each.direction == "import" and each.status in _LIVE for each in self.of(volume_id)
        )

    def get(self, transfer_id: str, volume_id: str) -> BucketTransfer:
        """Return a copy of a volume.

        Raises:
            PlatformError: 404.
        """
        transfer = self._transfers.get(transfer_id)
        if transfer is None or transfer.volume_id != volume_id:
            raise PlatformError(404, "Bucket transfer not found")
        return transfer

    def cancel(self, transfer: BucketTransfer) -> None:
        """End a copy; harmless when it has ended."""
        if transfer.status in _LIVE:
            self._end(transfer, "cancelled")

    def wire(self, transfer: BucketTransfer) -> JsonObject:
        """Return the `BucketTransfer` object of the contract."""
        started, completed = transfer.started_at, transfer.completed_at
        return {
            "id": transfer.id,
            "volumeName": transfer.volume_name,
            "direction": transfer.direction,
            "path": transfer.path,
            "url": transfer.url,
            "status": transfer.status,
            "progress": self._progress(transfer) if transfer.status == "running" else None,
            "createdAt": wire_date(transfer.created_at),
            "startedAt": started and wire_date(started),
            "completedAt": completed and wire_date(completed),
            "errorMessage": transfer.error,
        }

    def forget(self, volume_id: str) -> None:
        """Forget the copies of a volume that is gone."""
        for transfer in self.of(volume_id):
            transfer.status = "cancelled"
            del self._transfers[transfer.id]
            self._storage.save_object(KIND, transfer.id, None)

    def _start(
        self, transfer: BucketTransfer, source: _Place, target: _Place, obstacle: str | None
    ) -> None:
        if transfer.status != "queued":
            return
        if obstacle is not None:
            self._end(transfer, "failed", obstacle)
            return
        transfer.status, transfer.started_at = "running", self._clock.date()
        self._save(transfer)
        self._clock.call_later(self._step, partial(self._finish, transfer, source, target))

    def _finish(self, transfer: BucketTransfer, source: _Place, target: _Place) -> None:
        if transfer.status != "running":
            return
        try:
            for each in self._objects(source):
                key = target.prefix + each.key[len(source.prefix) :]
                self._s3.store.copy(each, target.bucket, key)
        except (S3Error, OSError) as error:
            self._end(transfer, "failed", str(error))
        else:
            self._end(transfer, "succeeded")

    def _objects(self, place: _Place) -> list[StoredObject]:
        return list(self._s3.store.after(place.bucket, place.prefix))

    def _obstacle(self, asked: JsonObject, place: _Place, own: str) -> str | None:
        """Return why the bucket can not be reached, if so."""
        if asked.get("endpointUrl") != own:
            return f"The local platform reaches only buckets of its own, at {own}"
        keys = asked["credentials"]
        try:
            key = self._s3.keys.find(keys["accessKeyId"], keys["secretAccessKey"])
            writing = asked["direction"] == "export"
            key.check(place.bucket, place.prefix, listing=True, writing=writing)
        except S3Error as error:
            return str(error)
        return None

    def _progress(self, transfer: BucketTransfer) -> JsonObject:
        assert transfer.started_at is not None
        passed = (self._clock.date() - transfer.started_at).total_seconds()
        return {
            "transferred": None,
            "total": None,
            "percentage": min(99, int(100 * passed / self._step)) if self._step else 0,
            "rate": None,
            "eta": f"{max(0, round(self._step - passed))}s",
            "errors": 0,
        }

    def _end(self, transfer: BucketTransfer, status: str, error: str | None = None) -> None:
        transfer.status, transfer.error = status, error
        transfer.completed_at = self._clock.date()
        self._save(transfer)

    def _save(self, transfer: BucketTransfer) -> None:
        self._storage.save_object(KIND, transfer.id, to_row(transfer))


def _folder(prefix: str) -> str:
    return prefix if not prefix or prefix.endswith("/") else prefix + "/"
