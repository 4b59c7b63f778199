"""Every object and every unfinished upload."""

from __future__ import annotations

import bisect
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.s3.blobs import Blobs
from prime_local.s3.errors import S3Error
from prime_local.s3.records import Description, Part, StoredObject, Upload
from prime_local.storage import Storage
from prime_local.tasks import TaskSet

OBJECTS = "s3_object"
UPLOADS = "s3_upload"
BUCKETS = "s3_bucket"
_KEY_BYTES = 1024


class ObjectStore:
    """Buckets with their objects.

    Args:
        folder: holds the bytes.
        clock: dates them.
        storage: keeps what is known of them.
        tasks: delete their bytes.
    """

    def __init__(
        self, folder: Path, clock: PlatformClock, storage: Storage, tasks: TaskSet
    ) -> None:
        self.blobs = Blobs(folder, tasks)
        self._clock = clock
        self._storage = storage
        self._objects: dict[str, dict[str, StoredObject]] = {}
        self._sorted: dict[str, list[str]] = {}
        self._uploads: dict[str, Upload] = {}

    async def take_over(
        self,
        buckets: Iterable[Mapping[str, Any]],
        objects: Iterable[Mapping[str, Any]],
        uploads: Iterable[Mapping[str, Any]],
    ) -> None:
        """Go on with what an earlier platform kept."""
        for row in buckets:
            self.add_bucket(row["name"])
        for each in map(StoredObject.from_row, objects):
            self._objects[each.bucket][each.key] = each
        self._sorted = {name: sorted(found) for name, found in self._objects.items()}
        self._uploads = {row["id"]: Upload.from_row(row) for row in uploads}
        await self.blobs.keep_only(self._blobs())

    def now(self) -> datetime:
        """Return the date of what happens now."""
        return self._clock.date()

    def add_bucket(self, name: str) -> None:
        """Make a bucket; one that is there stays."""
        if name not in self._objects:
            self._objects[name] = {}
            self._sorted[name] = []
            self._storage.save_object(BUCKETS, name, {"name": name})

    def find(self, bucket: str, key: str) -> StoredObject | None:
        """Return an object, if it is there.

        Raises:
            S3Error: `NoSuchBucket`.
        """
        return self._bucket(bucket).get(key)

    def put(self, new: StoredObject) -> None:
        """Put an object in the place of the one that has its key.

        Raises:
            S3Error: `NoSuchBucket` or `KeyTooLongError`.
        """
        objects = self._bucket(new.bucket)
        if len(new.key.encode()) > _KEY_BYTES:
            raise S3Error("KeyTooLongError", f"A key has at most {_KEY_BYTES} bytes")
        old = objects.get(new.key)
        if old is None:
            bisect.insort(self._sorted[new.bucket], new.key)
        else:
            self.blobs.discard([name for name, _ in old.segments])
        objects[new.key] = new
        self._storage.save_object(OBJECTS, new.id, new.to_row())

    def make(
        self,
        bucket: str,
        key: str,
        parts: list[Part],
        etag: str,
        description: Description,
        checksums: dict[str, str],
    ) -> StoredObject:
        """Put an object that some files hold one after another."""
        segments = [(part.blob, part.size) for part in parts]
        made = StoredObject(bucket, key, segments, etag, description, checksums, self.now())
        self.put(made)
        return made

    def copy(self, source: StoredObject, bucket: str, key: str) -> None:
        """Put a copy of an object elsewhere.

        Raises:
            S3Error: `NoSuchBucket` or `KeyTooLongError`.
        """
        segments = [(self.blobs.copy(name), size) for name, size in source.segments]
        made = replace(source, bucket=bucket, key=key, segments=segments, modified_at=self.now())
        try:
            self.put(made)
        except S3Error:
            self.blobs.discard([name for name, _ in segments])
            raise

    def delete(self, bucket: str, key: str) -> None:
        """Delete an object; harmless when there is none.

        Raises:
            S3Error: `NoSuchBucket`.
        """
        old = self._bucket(bucket).pop(key, None)
        if old is not None:
            keys = self._sorted[bucket]
            del keys[bisect.bisect_left(keys, key)]
            self.blobs.discard([name for name, _ in old.segments])
            self._storage.save_object(OBJECTS, old.id, None)

    def after(self, bucket: str, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """Yield the objects whose key has a prefix and comes after another, by their keys.

        Raises:
            S3Error: `NoSuchBucket`.
        """
        objects = self._bucket(bucket)
        keys = self._sorted[bucket]
        place = max(bisect.bisect_left(keys, prefix), bisect.bisect_right(keys, after))
        while place < len(keys) and keys[place].startswith(prefix):
            yield objects[keys[place]]
            place += 1

    def delete_all(self, bucket: str, prefix: str) -> None:
        """Delete the objects and uploads whose keys have a prefix."""
        for each in list(self.after(bucket, prefix)):
            self.delete(bucket, each.key)
        for upload in self.uploads(bucket, prefix):
            self.abort(upload)

    def begin(self, bucket: str, key: str, description: Description, algorithm: str) -> Upload:
        """Begin a multipart upload.

        Raises:
            S3Error: `NoSuchBucket`.
        """
        self._bucket(bucket)
        upload = Upload(uuid.uuid4().hex, bucket, key, description, algorithm, self.now())
        self._uploads[upload.id] = upload
        self._save(upload)
        return upload

    def upload(self, upload_id: str, bucket: str, key: str) -> Upload:
        """Return an upload.

        Raises:
            S3Error: `NoSuchUpload`.
        """
        upload = self._uploads.get(upload_id)
        if upload is None or (upload.bucket, upload.key) != (bucket, key):
            raise S3Error("NoSuchUpload", "The upload is finished, aborted, or never began")
        return upload

    def uploads(self, bucket: str, prefix: str) -> list[Upload]:
        """Return the uploads whose keys have a prefix, by key and age."""
        self._bucket(bucket)
        found = [
            upload
            for upload in self._uploads.values()
            if upload.bucket == bucket and upload.key.startswith(prefix)
        ]
        return sorted(found, key=lambda upload: (upload.key, upload.created_at, upload.id))

    def add_part(self, upload: Upload, number: int, part: Part) -> None:
        """Put a part into an upload, in the place of the one that has its number."""
        old = upload.parts.get(number)
        upload.parts[number] = part
        if old is not None:
            self.blobs.discard([old.blob])
        self._save(upload)

    def complete(
        self,
        upload: Upload,
        chosen: list[int],
        etag: str,
        checksums: dict[str, str],
    ) -> StoredObject:
        """End an upload with an object of some of its parts; the others are dropped."""
        parts = [upload.parts[number] for number in chosen]
        made = self.make(upload.bucket, upload.key, parts, etag, upload.description, checksums)
        self._end(upload, keep={part.blob for part in parts})
        return made

    def abort(self, upload: Upload) -> None:
        """End an upload with nothing."""
        self._end(upload)

    def clear(self) -> None:
        """Forget everything."""
        self.blobs.discard(self._blobs())
        self._objects.clear()
        self._sorted.clear()
        self._uploads.clear()

    def _blobs(self) -> set[str]:
        """Return the names of all files that are needed."""
        objects = (each for bucket in self._objects.values() for each in bucket.values())
        uploads = self._uploads.values()
        return {name for each in objects for name, _ in each.segments} | {
            part.blob for upload in uploads for part in upload.parts.values()
        }

    def _end(self, upload: Upload, keep: Iterable[str] = ()) -> None:
        del self._uploads[upload.id]
        self.blobs.discard({part.blob for part in upload.parts.values()} - set(keep))
        self._storage.save_object(UPLOADS, upload.id, None)

    def _save(self, upload: Upload) -> None:
        self._storage.save_object(UPLOADS, upload.id, upload.to_row())

    def _bucket(self, name: str) -> dict[str, StoredObject]:
        objects = self._objects.get(name)
        if objects is None:
            raise S3Error("NoSuchBucket", "There is no such bucket")
        return objects
