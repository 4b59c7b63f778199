"""Named storage that sandboxes share by publishing it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from prime_core.models import encode_request
from prime_core.pagination import Page, iterate_pages
from prime_sandboxes._async.checkpoints import AsyncSandboxCheckpoints
from prime_sandboxes.arguments import check_id, check_seconds, check_volume_name
from prime_sandboxes.models import (
    CreateVolumeRequest,
    PublishVolumeRequest,
    SandboxCheckpoint,
    Volume,
    VolumeListResponse,
)
from prime_sandboxes.operations import (
    CREATE_SANDBOX_VOLUME,
    DELETE_SANDBOX_VOLUME,
    GET_SANDBOX_VOLUME,
    LIST_SANDBOX_VOLUMES,
    PUBLISH_SANDBOX_VOLUME,
)

__all__ = ["AsyncVolumes"]

# The most volumes of a page.
PAGE = 100


class AsyncVolumes:
    """Creates, reads, publishes and deletes volumes. Made by `AsyncSandboxClient.volumes`.

    A sandbox that is created with a `VolumeMount` gets a private copy of what was last
    published. Publishing makes one sandbox's copy what later sandboxes get.

    Follows the documented page "sandboxes/volumes".

    Args:
        parent: the client.
    """

    def __init__(self, parent: AsyncSandboxCheckpoints) -> None:
        self._parent = parent
        self._transport = parent._transport

    async def create(self, name: str, *, team_id: str | None = None) -> Volume:
        """Creates an empty volume.

        It is sent once: when the connection breaks, `get` tells whether it was made.

        Args:
            name: 1 to 40 lowercase letters, digits and inner hyphens, unique in its scope.
            team_id: the team, by default the configured one; "" is the personal account.

        Raises:
            ConflictError: the scope has a volume of this name.
            ValueError: an impossible name; nothing was sent.
            APIError: any other failure.
        """
        request = CreateVolumeRequest(name=check_volume_name(name))
        return await self._transport.request(
            CREATE_SANDBOX_VOLUME, Volume, body=encode_request(request), team=team_id
        )

    async def list(
        self, *, team_id: str | None = None, page: int = 1, per_page: int = 50
    ) -> VolumeListResponse:
        """Reads a page of the volumes of a scope; `iter` reads all of them.

        Args:
            team_id: the team, by default the configured one; "" is the personal account.
            page: number of the page, from 1.
            per_page: volumes a page, 1 to 100.

        Raises:
            ValueError: an impossible page; nothing was sent.
            APIError: any other failure.
        """
        if page < 1 or not 1 <= per_page <= PAGE:
            raise ValueError(f"page is at least 1, per_page 1 to {PAGE}")
        query = {"page": page, "per_page": per_page}
        return await self._transport.request(
            LIST_SANDBOX_VOLUMES, VolumeListResponse, query=query, team=team_id
        )

    async def iter(self, *, team_id: str | None = None) -> AsyncIterator[Volume]:
        """Reads all volumes of a scope, page after page.

        Args:
            team_id: as for `list`.
        """

        async def fetch(number: int) -> Page[Volume]:
            page = await self.list(team_id=team_id, page=number, per_page=PAGE)
            return Page(page.volumes, page.total, page.has_next)

        async for volume in iterate_pages(fetch, PAGE, lambda volume: volume.id):
            yield volume

    async def get(self, name: str, *, team_id: str | None = None) -> Volume:
        """Reads a volume.

        Args:
            name: its name.
            team_id: as for `list`.

        Raises:
            NotFoundError: the scope has no volume of this name.
            ValueError: an impossible name; nothing was sent.
            APIError: any other failure.
        """
        path = {"name": check_volume_name(name)}
        return await self._transport.request(GET_SANDBOX_VOLUME, Volume, path=path, team=team_id)

    async def delete(self, name: str, *, team_id: str | None = None) -> None:
        """Deletes a volume and all that was ever published to it.

        While the platform still removes its data, which it answers with 503, the request is
        repeated until the client's ``timeout`` is over.

        Args:
            name: its name.
            team_id: as for `list`; a team's volume needs team admin.

        Raises:
            ConflictError: an active sandbox has it attached.
            ForbiddenError: the caller is no admin of the team.
            NotFoundError: the scope has no volume of this name.
            ServerError: its data is still being removed: call again later.
            ValueError: an impossible name; nothing was sent.
            APIError: any other failure.
        """
        path = {"name": check_volume_name(name)}
        await self._transport.request(DELETE_SANDBOX_VOLUME, path=path, team=team_id)

    async def publish(
        self,
        sandbox_id: str,
        name: str,
        force: bool = False,
        wait: bool = True,
        *,
        timeout_seconds: float = 300,
    ) -> SandboxCheckpoint:
        """Publishes a sandbox's copy of a volume: later sandboxes get a copy of that.

        It is sent once. When the connection breaks, or the caller is cancelled, it may have
        been published all the same; the volume's ``head_checkpoint_id`` tells.

        Args:
            sandbox_id: a running sandbox that has the volume attached, not read-only.
            name: the volume.
            force: replace the volume's contents, without merging, even when somebody else has
                published since the sandbox was created.
            wait: wait until the new contents are durable, and thus the volume's.
            timeout_seconds: how long to wait, above 0.

        Returns:
            The checkpoint of the contents: durable, or without ``wait`` in progress.

        Raises:
            ConflictError: somebody else has published, or is publishing.
            BadRequestError: the sandbox has the volume attached read-only.
            NotFoundError: the sandbox does not have the volume attached.
            CheckpointFailedError: it failed; the volume keeps what it had.
            CheckpointTimeoutError: the time is over; it may still succeed.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        path = {"sandbox_id": check_id(sandbox_id), "name": check_volume_name(name)}
        check_seconds("timeout_seconds", timeout_seconds)
        checkpoint = await self._transport.request(
            PUBLISH_SANDBOX_VOLUME,
            SandboxCheckpoint,
            path=path,
            body=encode_request(PublishVolumeRequest(force=force)),
        )
        if not wait:
            return checkpoint
        return await self._parent.wait_for_checkpoint(checkpoint.id, timeout_seconds)
