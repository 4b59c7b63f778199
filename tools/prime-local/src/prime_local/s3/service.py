"""The storage of a platform: its objects and its keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.identifiers import Identifiers
from prime_local.s3.keys import KIND as KEYS
from prime_local.s3.keys import StorageKeys
from prime_local.s3.operations import PREFIX
from prime_local.s3.store import BUCKETS, OBJECTS, UPLOADS, ObjectStore
from prime_local.storage import Objects, Storage
from prime_local.tasks import TaskSet

# Where volumes are.
VOLUMES_BUCKET = "training-volumes"
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


class S3Service:
    """Object storage.

    Args:
        folder: holds the bytes.
        clock: the platform's.
        identifiers: makes keys.
        storage: keeps what is known of objects.
        tasks: delete their bytes.
    """

    def __init__(
        self,
        folder: Path,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        tasks: TaskSet,
    ) -> None:
        self.store = ObjectStore(folder, clock, storage, tasks)
        self.keys = StorageKeys(clock, identifiers, storage)
        self.store.add_bucket(VOLUMES_BUCKET)

    async def take_over(self, objects: Objects) -> None:
        """Go on with what an earlier platform kept."""
        none: Mapping[str, Mapping[str, Any]] = {}
        await self.store.take_over(
            objects.get(BUCKETS, none).values(),
            objects.get(OBJECTS, none).values(),
            objects.get(UPLOADS, none).values(),
        )
        self.keys.take_over(objects.get(KEYS, none).values())

    def add_bucket(self, name: str, url: str) -> dict[str, str]:
        """Make a bucket of somebody's own, and a key to all of it that lasts.

        Args:
            name: the bucket's.
            url: the platform's address.

        Raises:
            ValueError: the name is that of the platform's own bucket, or none at all.
        """
        if not _NAME.fullmatch(name):
            raise ValueError("a bucket's name is 3 to 63 of a-z, 0-9, dots and hyphens")
        if name == VOLUMES_BUCKET:
            raise ValueError(f"{name} is the platform's own bucket")
        self.store.add_bucket(name)
        key = self.keys.make(name, prefixes=[""], writes=True, lifetime=None)
        return {
            "endpoint": url + PREFIX,
            "access_key_id": key.id,
            "secret_access_key": key.secret,
        }
