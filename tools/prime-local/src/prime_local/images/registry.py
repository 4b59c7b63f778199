"""All images and builds of a platform: finding, listing, changing and deleting them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from prime_local.assumptions import Assumptions
from prime_local.checkpoints.archive import Archive
from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.images.builds import BuildHost, BuildLife
from prime_local.images.kitchen import Kitchen
from prime_local.images.record import (
    Build,
    BuildStatus,
    Content,
    Image,
    dump,
    load_build,
    load_image,
)
from prime_local.images.references import (
    PLATFORM,
    ImageKey,
    ImageOwner,
    Source,
    read_reference,
)
from prime_local.sandboxes.images import is_simulated
from prime_local.storage import Storage
from prime_local.tasks import TaskSet

IMAGES, BUILDS = "image", "image_build"


@dataclass(frozen=True)
class Depot:
    """What the registry of images works with.

    Args:
        kitchen: carries builds out.
        folder: for uploads and contexts.
        build_time: how long a build takes at least, in seconds of the platform clock.
        limited: whether the assumed image limits are in force.
    """

    clock: PlatformClock
    identifiers: Identifiers
    tasks: TaskSet
    storage: Storage
    archive: Archive
    kitchen: Kitchen
    folder: Path
    build_time: float
    assumptions: Assumptions
    user_id: str
    limited: bool


class ImageRegistry:
    """Every image, and every build since the start of its data directory.

    Args:
        depot: what it works with.
    """

    def __init__(self, depot: Depot) -> None:
        self.images: dict[ImageKey, Image] = {}
        self._builds: dict[str, BuildLife] = {}
        self._holds: Counter[str] = Counter()
        self._depot = depot
        self._host = BuildHost(
            clock=depot.clock,
            tasks=depot.tasks,
            kitchen=depot.kitchen,
            folder=depot.folder,
            seconds=depot.build_time,
            base=self.content,
            hold=self.hold,
            on_change=self._save_build,
            on_built=self._built,
        )

    async def take_over(
        self, images: Iterable[Mapping[str, Any]], builds: Iterable[Mapping[str, Any]]
    ) -> None:
        """Take what an earlier platform left; what it was building has failed."""
        for kept in images:
            image = load_image(kept)
            self.images[image.key] = image
        for kept in builds:
            life = BuildLife(load_build(kept), self._host)
            self._builds[life.record.id] = life
            life.end(BuildStatus.FAILED, "The local platform ended before the build did")
        folders = (image.content.folder for image in self.images.values())
        used = {folder for folder in folders if folder is not None}
        await self._depot.archive.drop_all_but(used)

    def content(self, reference: str) -> Content | None:
        """Return what sandboxes of an image start with; None when there is no such image.

        Files that another isolation mode has made are of no use in this one.
        """
        image = self._find(reference)
        if image is not None:
            usable = image.content.layout in (None, self._depot.kitchen.isolation.name)
            return image.content if usable else None
        hub = not reference.startswith("prime/")
        return Content() if hub and is_simulated(reference) else None

    @contextlib.contextmanager
    def hold(self, content: Content) -> Iterator[None]:
        """Keep the files of an image while they are copied, though it may be deleted meanwhile."""
        if content.folder is None:
            yield
            return
        self._holds[content.folder] += 1
        try:
            yield
        finally:
            self._holds[content.folder] -= 1
            self._drop(content)

    def is_built(self, reference: str) -> bool:
        """Say whether an image needs no build at its first use, since it is kept here."""
        return self._find(reference) is not None

    def visibility(self, key: ImageKey) -> str:
        """Return who may use an image, also one that is still to be."""
        image = self.images.get(key)
        if image is not None:
            return image.visibility
        return "PUBLIC" if key.owner == PLATFORM else "PRIVATE"

    def build(
        self,
        key: ImageKey,
        platform: str,
        visibility: str | None,
        *,
        source: str | None = None,
        dockerfile_path: str = "Dockerfile",
    ) -> BuildLife:
        """Begin a build.

        Raises:
            PlatformError: 429 when an image limit is reached.
        """
        self._check_limits(key)
        make = self._depot.identifiers.make
        record = Build(
            id=make("bld_"),
            artifact_id=make("img_"),
            key=key,
            platform=platform,
            created_at=self._depot.clock.date(),
            visibility=visibility,
            source=source,
            dockerfile_path=dockerfile_path,
        )
        life = BuildLife(record, self._host)
        self._builds[record.id] = life
        life.begin()
        return life

    def transfer(
        self, source: Source, key: ImageKey, platform: str, visibility: str | None
    ) -> Build:
        """Begin to copy an image of a public registry."""
        return self.build(key, platform, visibility, source=source.reference).record

    def get_build(self, build_id: str) -> BuildLife:
        """Return a build.

        Raises:
            PlatformError: 404.
        """
        life = self._builds.get(build_id)
        if life is None:
            raise PlatformError(404, "Build not found")
        return life

    def list_builds(self) -> list[Build]:
        """Return every build, newest first."""
        return [life.record for life in reversed(self._builds.values())]

    def list_rows(self, owner: ImageOwner, search: str) -> list[list[JsonObject]]:
        """Return the rows of an owner's images that match, an image's together, newest first."""
        rows: dict[ImageKey, list[JsonObject]] = {}
        dates: dict[ImageKey, datetime] = {}
        for key, image in self.images.items():
            rows[key], dates[key] = [image.to_row()], image.pushed_at
        for life in self._builds.values():
            build = life.record
            key, date = build.key, build.created_at
            if build.status.final:
                if key in self.images or build.status is BuildStatus.COMPLETED:
                    continue
                # Of what has only failed so far, the last attempt is shown.
                rows[key] = [row for row in rows.get(key, ()) if not row["completedAt"]]
            rows.setdefault(key, []).append(build.to_row(self.visibility(key)))
            dates[key] = max(date, dates.get(key, date))
        found = [
            key
            for key in rows
            if key.owner == owner and search.lower() in f"{key.name}:{key.tag}".lower()
        ]
        return [rows[key] for key in sorted(found, key=lambda key: dates[key], reverse=True)]

    async def delete(self, key: ImageKey) -> bool:
        """Delete an image with its builds; returns whether there was any."""
        image = self.images.pop(key, None)
        builds = [life for life in self._builds.values() if life.record.key == key]
        for life in builds:
            life.end(BuildStatus.CANCELLED, "The image was deleted")
            del self._builds[life.record.id]
            self._depot.storage.save_object(BUILDS, life.record.id, None)
        if image is not None:
            self._depot.storage.save_object(IMAGES, image.id, None)
            self._drop(image.content)
        return image is not None or bool(builds)

    def move(self, image: Image, key: ImageKey, visibility: str) -> None:
        """Give an image another owner, name, tag or visibility; its builds go along."""
        for life in self._builds.values():
            if life.record.key == image.key and life.record.status.final:
                life.record.key = key
                self._save_build(life.record)
        del self.images[image.key]
        image.key, image.visibility = key, visibility
        self.images[key] = image
        self._depot.storage.save_object(IMAGES, image.id, dump(image))

    async def clear(self) -> None:
        """End every build and forget every image."""
        lives = list(self._builds.values())
        self._builds.clear()
        self.images.clear()
        for life in lives:
            life.end(BuildStatus.CANCELLED)
        await asyncio.gather(*(life.gone() for life in lives))
        await self._depot.archive.drop_all_but(())

    async def stop(self) -> None:
        """End every build, since the platform ends."""
        for life in self._builds.values():
            life.end(BuildStatus.FAILED, "The local platform ended before the build did")
        await asyncio.gather(*(life.gone() for life in self._builds.values()))

    def _find(self, reference: str) -> Image | None:
        key = read_reference(reference, self._depot.user_id)
        return None if key is None else self.images.get(key)

    def _built(self, build: Build, content: Content) -> None:
        now = self._depot.clock.date()
        earlier = self.images.get(build.key)
        image = Image(
            id=build.artifact_id,
            key=build.key,
            visibility=build.visibility or self.visibility(build.key),
            content=content,
            created_at=build.created_at,
            started_at=build.started_at or now,
            pushed_at=now,
        )
        self.images[build.key] = image
        self._depot.storage.save_object(IMAGES, image.id, dump(image))
        if earlier is not None:
            self._depot.storage.save_object(IMAGES, earlier.id, None)
            self._drop(earlier.content)

    def _save_build(self, build: Build) -> None:
        if build.id in self._builds:
            self._depot.storage.save_object(BUILDS, build.id, dump(build))

    def _check_limits(self, key: ImageKey) -> None:
        if not self._depot.limited:
            return
        assumed = self._depot.assumptions
        active = {life.record.key for life in self._builds.values() if not life.record.status.final}
        known = {*self.images, *active}
        most = assumed.image_limit
        if most is not None and key not in known and len(known) >= most:
            raise PlatformError(429, "Image limit exceeded")
        if assumed.image_storage_limit is not None:
            stored = sum(image.content.size_bytes for image in self.images.values())
            if stored >= assumed.image_storage_limit:
                raise PlatformError(429, "Image storage limit exceeded")

    def _drop(self, content: Content) -> None:
        """Delete files that no image has any more, once nobody copies them."""
        folder = content.folder
        kept = {image.content.folder for image in self.images.values()}
        if folder is not None and folder not in kept and not self._holds[folder]:
            self._depot.tasks.start(self._depot.archive.drop(folder))
