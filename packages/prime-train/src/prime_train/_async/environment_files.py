"""Wheels and sources of environments."""

from __future__ import annotations

import os
import re
import tempfile
import urllib.parse
from pathlib import Path
from typing import Literal

from prime_core.arguments import check_id
from prime_core.contents import upload_of
from prime_core.decoding import model_reader
from prime_core.errors import APIError, APIResponseError, NotFoundError
from prime_core.local_files import PartialFile, file_upload
from prime_core.models import encode_request
from prime_core.presigned import get_file, put_file
from prime_core.sync import in_thread
from prime_train._async.environment_lookup import AsyncEnvironmentLookup
from prime_train.environment_source import (
    Wheel,
    content_hash,
    file_hash,
    pack_source,
    read_wheel,
    source_files,
)
from prime_train.environment_unpacking import unpack_source
from prime_train.errors import PublishError
from prime_train.models.environment_requests import RegisterSourceBody, RegisterWheelBody
from prime_train.models.environments import (
    Published,
    PublishedEnvironment,
    UploadTicket,
    VersionList,
)
from prime_train.operations import (
    FINALIZE_ENVIRONMENT_SOURCE,
    FINALIZE_ENVIRONMENT_WHEEL,
    LIST_ENVIRONMENT_VERSIONS,
    REGISTER_ENVIRONMENT_SOURCE,
    REGISTER_ENVIRONMENT_WHEEL,
)

__all__ = ["AsyncEnvironmentFiles"]

_WHEEL_NAME = re.compile(r"[A-Za-z0-9_.+!-]+\.whl")


class AsyncEnvironmentFiles(AsyncEnvironmentLookup):
    """The part of `AsyncEnvironments` that publishes and fetches files."""

    async def push(
        self,
        folder: str | os.PathLike[str],
        *,
        wheel: str | os.PathLike[str] | None = None,
        name: str | None = None,
        visibility: Literal["PUBLIC", "PRIVATE"] | None = None,
        team_slug: str | None = None,
        team_id: str | None = None,
    ) -> PublishedEnvironment:
        """Publishes a version of an environment: its wheel, then its source.

        Build the wheel first, with ``uv build --wheel`` for one. The source is packed here:
        ``README.md``, ``pyproject.toml``, Python files and folders; hidden files, links, what
        builds leave behind and what git ignores are left out.

        Args:
            folder: the source, with a ``pyproject.toml``.
            wheel: the built wheel; the only one in ``dist`` by default.
            name: of the environment; the wheel's by default.
            visibility: of an environment that is made.
            team_slug: the team whose it is.
            team_id: likewise, by id; None takes the client's, "" is the personal account.

        Raises:
            FileNotFoundError: there is no wheel, or no ``pyproject.toml``.
            ValueError: the wheel can't be read, or the source is larger than 250 MB.
            ConflictError: this source is published already.
            PublishError: the platform did not publish it.
            APIError: any other failure; nothing is published unless the last answer was lost.
        """
        root = Path(folder)
        files = await in_thread(source_files)(root)
        built = await in_thread(read_wheel)(root, wheel)
        digest = await in_thread(content_hash)(root, files)
        with tempfile.TemporaryDirectory(prefix="prime-push-") as scratch:
            called = name or built.name
            archive = Path(scratch) / f"{called}-{built.version}-{digest[:8]}.tar.gz"
            await in_thread(_pack)(root, files, archive)
            found = await self.resolve(
                called, visibility=visibility, team_slug=team_slug, team_id=team_id
            )
            await self._push_wheel(found.id, built, digest)
            version_id = await self._push_source(found.id, built, digest, archive)
        slug = None if found.owner is None else f"{found.owner.name}/{called}"
        await self._publish(found.id, version_id, slug, digest)
        return PublishedEnvironment(
            environment_id=found.id,
            owner=found.owner,
            name=called,
            version_id=version_id,
            version=built.version,
            content_hash=digest,
            created=found.created,
        )

    async def _push_wheel(self, environment_id: str, wheel: Wheel, digest: str) -> None:
        body = RegisterWheelBody(
            content_hash=digest,
            filename=wheel.path.name,
            sha256=wheel.sha256,
            size=wheel.size,
            semantic_version=wheel.version,
            metadata=wheel.metadata,
            runtime_hint=wheel.runtime_hint,
        )
        path = {"environment_id": environment_id}
        ticket = await self._transport.request(
            REGISTER_ENVIRONMENT_WHEEL, UploadTicket, path=path, body=encode_request(body)
        )
        if ticket.upload_url:
            upload = await file_upload(wheel.path)
            await put_file(self._transport, ticket.upload_url, upload)
        await self._transport.request(
            FINALIZE_ENVIRONMENT_WHEEL, path={**path, "wheel_id": ticket.id}
        )

    async def _push_source(
        self, environment_id: str, wheel: Wheel, digest: str, archive: Path
    ) -> str:
        body = RegisterSourceBody(
            content_hash=digest,
            filename=archive.name,
            sha256=await in_thread(file_hash)(archive),
            semantic_version=wheel.version,
            metadata=wheel.metadata,
            runtime_hint=wheel.runtime_hint,
        )
        ticket = await self._transport.request(
            REGISTER_ENVIRONMENT_SOURCE,
            UploadTicket,
            path={"environment_id": environment_id},
            body=encode_request(body),
        )
        if not ticket.upload_url:
            raise APIResponseError("The platform named no address for the source.")
        await put_file(self._transport, ticket.upload_url, await upload_of(archive))
        return ticket.id

    async def _publish(
        self, environment_id: str, version_id: str, slug: str | None, digest: str
    ) -> None:
        """Publishes what was uploaded; when the answer is lost, the versions tell."""
        path = {"environment_id": environment_id, "version_id": version_id}
        call = self._transport.prepare(FINALIZE_ENVIRONMENT_SOURCE, model_reader(Published), path)
        try:
            done = await self._transport.perform(call)
        except APIError:
            if not call.unresolved or slug is None or not await self._has(slug, digest):
                raise
            return
        if not done.success:
            raise PublishError(done.message or "the platform gave no reason")

    async def _has(self, slug: str, digest: str) -> bool:
        owner, _, name = slug.partition("/")
        try:
            found = await self._transport.request(
                LIST_ENVIRONMENT_VERSIONS, VersionList, path={"owner": owner, "name": name}
            )
        except NotFoundError:
            return False
        return digest in [each.content_hash for each in found.data]

    async def pull(
        self, slug: str, folder: str | os.PathLike[str], *, version: str = "latest"
    ) -> None:
        """Fetches the source of an environment into a new or empty folder.

        Nothing is written outside of the folder, whatever the archive holds, and the folder
        appears once it is whole. The API key goes to no other host than the platform's own.

        Args:
            slug: ``owner/name``.
            folder: where it goes.
            version: ``latest``, a version, or a content hash.

        Raises:
            NotFoundError: there is no such environment or version, or no source of it.
            FileExistsError: the folder holds something.
            UnsafeArchiveError: a ``ValueError``; the archive would write elsewhere.
            APIError: any other failure.
        """
        found = await self.get(slug, version=version)
        if found.package_url is None:
            raise NotFoundError(f"{slug} has no source at {version}.")
        with tempfile.TemporaryDirectory(prefix="prime-pull-") as scratch:
            archive = Path(scratch) / "source.tar.gz"
            async with PartialFile(archive) as place:
                await get_file(self._transport, found.package_url, place)
            await unpack_source(archive, folder)

    async def download_wheel(
        self, slug: str, folder: str | os.PathLike[str], *, version: str = "latest"
    ) -> Path:
        """Fetches the wheel of an environment into a folder, under its own name.

        Args:
            slug: ``owner/name``.
            folder: where it goes; it is made if there is none.
            version: ``latest``, a version, or a content hash.

        Returns:
            The file.

        Raises:
            NotFoundError: there is no such environment or version, or no wheel of it.
            APIResponseError: its address ends in no wheel's name.
            APIError: any other failure.
        """
        check_id("version", version)
        found = await self.get(slug, version=version)
        if found.wheel_url is None:
            raise NotFoundError(f"{slug} has no wheel at {version}.")
        path = urllib.parse.unquote(urllib.parse.urlsplit(found.wheel_url).path)
        name = path.rpartition("/")[2]
        if not _WHEEL_NAME.fullmatch(name):
            raise APIResponseError("The address of the wheel ends in no wheel's name.")
        target = Path(folder) / name
        async with PartialFile(target) as place:
            await get_file(self._transport, found.wheel_url, place)
        return target


def _pack(folder: Path, files: list[str], archive: Path) -> None:
    with open(archive, "xb") as file:
        pack_source(folder, files, file)
