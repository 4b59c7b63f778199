"""Every volume, who may write to it, and what happens to it."""

from __future__ import annotations

import base64
import errno
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from prime_local.account.service import Account
from prime_local.billing.wallets import Wallets
from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.ledger import Tally
from prime_local.s3.bodies import store
from prime_local.s3.records import Description, Part
from prime_local.s3.service import VOLUMES_BUCKET, S3Service
from prime_local.sandboxes.record import Owner, wire_date
from prime_local.storage import Objects, Storage
from prime_local.training.volumes.buckets import KIND as TRANSFERS
from prime_local.training.volumes.buckets import BucketTransfers
from prime_local.training.volumes.leases import KIND as LEASES
from prime_local.training.volumes.leases import PUT_SECONDS, UploadLeases
from prime_local.training.volumes.record import GIB, LARGEST_GIB, TrainingVolume, gib_of
from prime_local.training.volumes.sessions import KIND as SESSIONS
from prime_local.training.volumes.sessions import VolumeSessions

KIND = "training_volume"
_NO_MONEY = "Insufficient funds in the wallet"
_NO_ALLOCATION = (
    "SSH sessions need a cluster allocation or a team-owned cluster with shared storage"
)


class TrainingVolumes:
    """Every volume of training.

    Args:
        clock: the platform's.
        identifiers: makes their ids.
        storage: keeps them.
        account: whose they are.
        wallets: what they are paid from.
        s3: holds their files.
        step: seconds on the clock that a deletion takes, each phase of a session, and each state
            of a copy from or to a bucket.
        tally: counts them.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        account: Account,
        wallets: Wallets,
        s3: S3Service,
        step: float,
        tally: Tally,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._account = account
        self._wallets = wallets
        self._s3 = s3
        self._step = step
        self._tally = tally
        self._volumes: dict[tuple[str | None, str], TrainingVolume] = {}
        self.leases = UploadLeases(clock, identifiers, storage, s3.keys)
        self.sessions = VolumeSessions(clock, identifiers, storage, step)
        self.transfers = BucketTransfers(clock, identifiers, storage, s3, step)

    def take_over(self, objects: Objects) -> None:
        """Go on with the volumes of an earlier platform."""
        none: Mapping[str, Mapping[str, Any]] = {}
        for row in objects.get(KIND, none).values():
            volume = TrainingVolume.from_row(row)
            self._begin(volume)
            if volume.status == "TERMINATING":
                self._clock.call_later(self._step, partial(self._remove, volume))
        self.leases.take_over(objects.get(LEASES, none).values())
        self.sessions.take_over(objects.get(SESSIONS, none).values())
        self.transfers.take_over(objects.get(TRANSFERS, none).values())

    def all(self, team_id: str | None) -> list[TrainingVolume]:
        """Return the volumes of a team or of the caller, oldest first."""
        return [volume for volume in self._volumes.values() if volume.team_id == team_id]

    def get(self, name: str, team_id: str | None) -> TrainingVolume:
        """Return a volume.

        Raises:
            PlatformError: 404.
        """
        volume = self._volumes.get((team_id, name))
        if volume is None:
            raise PlatformError(404, f"volume '{name}' not found")
        return volume

    def create(self, name: str, size: str, owner: Owner, *, warm: bool) -> TrainingVolume:
        """Make a volume, which can be used at once.

        Args:
            name: not that of another one of the owner's.
            size: such as ``500Gi``.
            owner: whose it is.
            warm: start a read-only session, too, if the owner can have one.

        Raises:
            PlatformError: 400, 402 or 409.
        """
        self._check_size(size)
        if (owner.team_id, name) in self._volumes:
            raise PlatformError(409, f"volume '{name}' already exists")
        self._check_money(owner.team_id)
        volume = TrainingVolume(
            id=self._identifiers.make("cmv", 22),
            name=name,
            user_id=owner.user_id,
            team_id=owner.team_id,
            size=size,
            created_at=self._clock.date(),
        )
        self._begin(volume)
        if warm and self._session_obstacle(owner.team_id) is None:
            self.sessions.create(volume, read_only=True)
        return volume

    def expand(self, volume: TrainingVolume, size: str) -> None:
        """Let a volume grow.

        Raises:
            PlatformError: 400 or 402, 409 when it is being deleted.
        """
        self.check_there(volume)
        self._check_size(size)
        if gib_of(size) <= gib_of(volume.size):
            raise PlatformError(400, "volumes can only grow")
        self._check_money(volume.team_id)
        volume.size = size
        self._save(volume)

    def delete(self, volume: TrainingVolume, failure: str | None) -> None:
        """Begin to delete a volume, which is not paid for from now on; harmless when repeated.

        Args:
            volume: one that nobody uses.
            failure: why it will not succeed, if it is to fail.

        Raises:
            PlatformError: 409.
        """
        if volume.status == "TERMINATING":
            return
        self._check_unused(volume)
        self._wallets.stop(volume.id)
        volume.status = "TERMINATING" if failure is None else "TOMBSTONED"
        self._save(volume)
        if failure is None and self._step:
            self._clock.call_later(self._step, partial(self._remove, volume))
        elif failure is None:
            self._remove(volume)

    def used(self, volume: TrainingVolume) -> tuple[int, int]:
        """Return how many bytes a volume holds, in how many objects."""
        sizes = [each.size for each in self._s3.store.after(VOLUMES_BUCKET, volume.prefix)]
        return sum(sizes), len(sizes)

    def wire(self, volume: TrainingVolume) -> JsonObject:
        """Return the `Volume` object of the contract."""
        person = self._account.people.to_wire()
        return volume.to_wire(person["name"], person["email"])

    # The writer lock

    def attach(self, name: str, team_id: str | None, run_id: str) -> None:
        """Let a run be the volume's writer, until `release`; one that is so already stays.

        Raises:
            PlatformError: 404, or 409 where somebody else writes.
        """
        volume = self.get(name, team_id)
        if volume.run_id == run_id:
            return
        self.check_free(volume, "has an active read-write session", "end that session first")
        volume.run_id = run_id
        self._save(volume)

    def release(self, run_id: str) -> None:
        """Let go of the volume that a run has, if it has one."""
        for volume in self._volumes.values():
            if volume.run_id == run_id:
                volume.run_id = None
                self._save(volume)

    async def write_file(self, run_id: str, key: str, pieces: Iterable[bytes]) -> None:
        """Save a file on the volume that a run has.

        Args:
            run_id: the run.
            key: path on the volume.
            pieces: the content.

        Raises:
            OSError: the volume is full, or there is none.
        """
        volume = next((each for each in self._volumes.values() if each.run_id == run_id), None)
        if volume is None:
            raise OSError(errno.ENXIO, "The run has no volume", key)
        received = await store(_each(pieces), self._s3.store.blobs)
        room = gib_of(volume.size) * GIB - self.used(volume)[0]
        if volume.run_id != run_id or received.size > room:
            self._s3.store.blobs.discard([received.blob])
            raise OSError(errno.EDQUOT, "Disk quota exceeded", key)
        now = self._clock.date()
        part = Part(received.blob, received.size, received.md5, {}, now)
        digest = base64.b64encode(bytes.fromhex(received.md5)).decode()
        described = Description(metadata={"mtime": _mtime(now), "md5chksum": digest})
        self._s3.store.make(
            VOLUMES_BUCKET, volume.prefix + key, [part], received.md5, described, {}
        )

    def check_free(self, volume: TrainingVolume, session_text: str, advice: str) -> None:
        """Refuse a writer when there is one.

        Args:
            volume: what it wants to write to.
            session_text: what is said of a read-write session.
            advice: what to do about that.

        Raises:
            PlatformError: 409.
        """
        self.check_there(volume)
        named = f"volume '{volume.name}'"
        session = self.sessions.writable(volume.id)
        if volume.run_id is not None:
            raise PlatformError(409, f"{named} is attached read-write by a run ({volume.run_id})")
        if session is not None:
            raise PlatformError(409, f"{named} {session_text} ({session.id}); {advice}")
        self._check_no_upload(volume)

    def check_there(self, volume: TrainingVolume) -> None:
        """Refuse what needs a volume that is being deleted.

        Raises:
            PlatformError: 409.
        """
        if volume.status != "RUNNING":
            raise PlatformError(409, f"volume '{volume.name}' is being deleted")

    def check_session(self, volume: TrainingVolume, *, read_only: bool) -> None:
        """Refuse a session that cannot be.

        Raises:
            PlatformError: 409.
        """
        self.check_there(volume)
        obstacle = self._session_obstacle(volume.team_id)
        if obstacle is not None:
            raise PlatformError(409, obstacle)
        if not read_only:
            advice = "use --read-only, or end that session first"
            self.check_free(volume, "has an active read-write session", advice)

    def clear(self) -> None:
        self._volumes.clear()

    def _begin(self, volume: TrainingVolume) -> None:
        self._volumes[volume.team_id, volume.name] = volume
        self._tally.made()
        self._save(volume)
        if volume.status == "RUNNING":
            self._wallets.meter("training", volume.id, volume.team_id, lambda: volume.hourly)

    def _remove(self, volume: TrainingVolume) -> None:
        if self._volumes.get((volume.team_id, volume.name)) is not volume:
            return  # everything was forgotten meanwhile
        del self._volumes[volume.team_id, volume.name]
        self._s3.keys.revoke_all(VOLUMES_BUCKET, volume.prefix)
        self._s3.store.delete_all(VOLUMES_BUCKET, volume.prefix)
        self.sessions.forget(volume.id)
        self.transfers.forget(volume.id)
        self._storage.save_object(KIND, volume.id, None)
        self._tally.ended(deleted=True)

    def _check_unused(self, volume: TrainingVolume) -> None:
        named = f"volume '{volume.name}'"
        if volume.run_id is not None:
            raise PlatformError(409, f"{named} is mounted by 1 live run(s)")
        sessions = len(self.sessions.live(volume.id))
        if sessions:
            raise PlatformError(409, f"{named} has {sessions} active volume SSH session(s)")
        self._check_no_upload(volume)

    def _check_no_upload(self, volume: TrainingVolume) -> None:
        lease = self.leases.of(volume.id)
        if lease is not None or self.transfers.importing(volume.id):
            until = wire_date(self._clock.date(PUT_SECONDS) if lease is None else lease.expires_at)
            text = f"an upload to volume '{volume.name}' is in progress until {until}"
            raise PlatformError(409, f"{text}; retry after it finishes")

    def _session_obstacle(self, team_id: str | None) -> str | None:
        """Return why an owner can have no session, if so."""
        if not any(key.primary for key in self._account.ssh_keys.all()):
            return "no SSH public key is configured for your account"
        return None if team_id == self._account.people.lab.id else _NO_ALLOCATION

    def _check_size(self, size: str) -> None:
        if len(size) > 7 or gib_of(size) > LARGEST_GIB:
            raise PlatformError(400, "the largest size of a volume is 20Ti")

    def _check_money(self, team_id: str | None) -> None:
        if self._wallets.balance(team_id) <= 0:
            raise PlatformError(402, _NO_MONEY)

    def _save(self, volume: TrainingVolume) -> None:
        self._storage.save_object(KIND, volume.id, volume.to_row())


async def _each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _mtime(date: datetime) -> str:
    """Return a time as rclone writes it: seconds, with decimals as far as there are any."""
    return f"{date.timestamp():.3f}".rstrip("0").rstrip(".")
