"""Uploads: each holds its volume until it is released, or its keys expire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.rows import from_row, to_row
from prime_local.s3.keys import StorageKey, StorageKeys
from prime_local.s3.service import VOLUMES_BUCKET
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage
from prime_local.training.volumes.paths import reach
from prime_local.training.volumes.record import TrainingVolume

KIND = "training_volume_lease"
# Seconds that the keys of an upload last, and so its lease; and the keys of a download.
PUT_SECONDS = 900.0
GET_SECONDS = 3600.0


@dataclass
class Lease:
    """An upload.

    Args:
        paths: what it writes.
        keys: ids of the storage's keys that it has been given.
    """

    id: str
    volume_id: str
    paths: list[str]
    expires_at: datetime
    keys: list[str] = field(default_factory=list)


class UploadLeases:
    """Every upload that was routed to the storage.

    Args:
        clock: ends them.
        identifiers: makes their ids.
        storage: keeps them.
        keys: those of the storage that they get.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        keys: StorageKeys,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._keys = keys
        self._leases: dict[str, Lease] = {}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the uploads of an earlier platform."""
        self._leases = {row["id"]: from_row(Lease, row) for row in rows}

    def of(self, volume_id: str) -> Lease | None:
        """Return the upload that a volume has, if there is one."""
        self._drop_lapsed()
        found = (each for each in self._leases.values() if each.volume_id == volume_id)
        return next(found, None)

    def begin(self, volume: TrainingVolume, paths: list[str]) -> Lease:
        """Let an upload have a volume, which nobody else writes to."""
        lease = Lease(
            self._identifiers.make("cml", 22), volume.id, paths, self._clock.date(PUT_SECONDS)
        )
        self._leases[lease.id] = lease
        return lease

    def refresh(self, lease_id: str, volume: TrainingVolume, paths: list[str]) -> Lease:
        """Let an upload have its volume for longer.

        Raises:
            PlatformError: 409 when it has ended, 400 when it was to write elsewhere.
        """
        lease = self.of(volume.id)
        if lease is None or lease.id != lease_id:
            raise PlatformError(409, "The upload lease has ended; begin the upload again")
        if lease.paths != paths:
            raise PlatformError(400, "The upload lease is for another path")
        lease.expires_at = self._clock.date(PUT_SECONDS)
        return lease

    def put_keys(self, lease: Lease, volume: TrainingVolume) -> StorageKey:
        """Make keys for an upload, as good as its lease."""
        objects, prefixes = reach(volume.prefix, lease.paths)
        key = self._keys.make(
            VOLUMES_BUCKET, objects=objects, prefixes=prefixes, writes=True, lifetime=PUT_SECONDS
        )
        lease.keys.append(key.id)
        self._storage.save_object(KIND, lease.id, to_row(lease))
        return key

    def get_keys(self, volume: TrainingVolume, path: str) -> StorageKey:
        """Make keys for a download."""
        objects, prefixes = reach(volume.prefix, [path])
        return self._keys.make(
            VOLUMES_BUCKET, objects=objects, prefixes=prefixes, writes=False, lifetime=GET_SECONDS
        )

    def release(self, lease_id: str, volume_id: str) -> None:
        """End an upload and its keys; harmless when it has ended."""
        lease = self._leases.get(lease_id)
        if lease is not None and lease.volume_id == volume_id:
            self._end(lease)

    def _drop_lapsed(self) -> None:
        now = self._clock.date()
        for lease in [each for each in self._leases.values() if each.expires_at <= now]:
            # Its keys have expired with it, and those who use them are told so.
            lease.keys.clear()
            self._end(lease)

    def _end(self, lease: Lease) -> None:
        del self._leases[lease.id]
        for key_id in lease.keys:
            self._keys.revoke(key_id)
        self._storage.save_object(KIND, lease.id, None)


def route_wire(key: StorageKey, prefix: str, endpoint: str, lease: Lease | None) -> JsonObject:
    """Return the `VolumeTransferRoute` of the contract to the storage."""
    assert key.expires_at is not None
    return {
        "via": "r2",
        "endpoint": endpoint,
        "bucket": key.bucket,
        "prefix": prefix,
        "accessKeyId": key.id,
        "secretAccessKey": key.secret,
        "sessionToken": key.token,
        "expiresAt": wire_date(key.expires_at),
        "leaseId": None if lease is None else lease.id,
    }
