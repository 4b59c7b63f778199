"""Copies between volumes and buckets, which the platform makes."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Literal

from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResource
from prime_core.arguments import build, check_id, check_seconds
from prime_core.creation import create_unkeyed
from prime_core.errors import NotFoundError
from prime_core.models import encode_request
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_core.secret_values import kept_out_of_errors
from prime_train.configs.sizes import check_volume_name
from prime_train.hosted_waiting import is_transient
from prime_train.models.bucket_transfers import (
    BucketCredentials,
    BucketTransfer,
    BucketTransferList,
    CreateBucketTransferBody,
)
from prime_train.operations import (
    CANCEL_BUCKET_TRANSFER,
    CREATE_BUCKET_TRANSFER,
    GET_BUCKET_TRANSFER,
    LIST_BUCKET_TRANSFERS,
)
from prime_train.transfers.paths import check_writable, volume_path
from prime_train.volume_refusals import typed_refusals
from prime_train.volume_waiting import Key, wait_until_copied

__all__ = ["AsyncBucketTransfers"]


class AsyncBucketTransfers(AsyncResource):
    """Copies volumes from and to buckets. Made by `AsyncTrainClient.volumes`.

    The platform copies by itself, so nothing passes through this machine.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules: PerLoop[PollSchedule[Key, BucketTransfer]] = PerLoop(
            lambda: PollSchedule(self._look, transient=is_transient, batch=1)
        )

    async def create(
        self,
        volume: str,
        direction: Literal["import", "export"],
        path: str,
        url: str,
        credentials: BucketCredentials,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        team_id: str | None = None,
    ) -> BucketTransfer:
        """Asks for a copy of what is in a folder; `wait` waits for its end.

        It is sent once. When its answer is lost, the copy is found as the only new one of its
        kind. When the caller is cancelled meanwhile, or the program ends, it is cancelled, unless
        its answer is lost: then the log says that it may go on. Files that were copied stay.

        Args:
            volume: name of the volume.
            direction: ``import`` to the volume, or ``export`` from it.
            path: folder on the volume, from its root on; not under ``runs/`` for an import.
            url: the bucket's end, ``s3://bucket`` or ``s3://bucket/prefix``.
            credentials: keys to the bucket. They are sent this once, and never come back.
            region: the bucket's; the platform assumes us-east-1.
            endpoint_url: address of a store that speaks S3, in place of AWS.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumeBusyError: somebody else writes to the volume.
            VolumePathError: a path that can't be, or can't be written to; nothing was sent.
            NotFoundError: there is no such volume.
            ValueError: another wrong argument; nothing was sent.
            APIError: any other failure.
        """
        if not isinstance(credentials, BucketCredentials):
            raise TypeError(f"credentials are BucketCredentials, not {type(credentials).__name__}")
        folder = "/".join(volume_path(path).parts)
        if direction == "import":
            check_writable(folder)
        fields: dict[str, object] = {
            "direction": direction,
            "path": folder,
            "url": url,
            "credentials": credentials,
            "region": region,
            "endpoint_url": endpoint_url,
        }
        body = build(CreateBucketTransferBody, fields)
        name = check_volume_name(volume)
        before = {transfer.id for transfer in await self.list(name, team_id=team_id)}

        async def find() -> builtins.list[BucketTransfer]:
            asked = (direction, folder, url)
            found = await self.list(name, team_id=team_id)
            fitting = [each for each in found if (each.direction, each.path, each.url) == asked]
            return [each for each in fitting if each.id not in before]

        with typed_refusals(), kept_out_of_errors(credentials.secret_access_key):
            return await create_unkeyed(
                self._transport,
                CREATE_BUCKET_TRANSFER,
                BucketTransfer,
                path={"name": name},
                body=encode_request(body),
                team=team_id,
                description=f"Copy of {url} and volume {name!r}",
                discard=lambda transfer: self._discard(name, transfer.id, team_id),
                find=find,
                marked=False,
            )

    async def _discard(self, volume: str, transfer_id: str, team_id: str | None) -> None:
        try:
            await self.cancel(volume, transfer_id, team_id=team_id)
        except NotFoundError:
            return

    async def list(
        self, volume: str, *, team_id: str | None = None
    ) -> builtins.list[BucketTransfer]:
        """Lists the caller's copies of a volume, newest first, those that have ended too.

        Args:
            volume: name of the volume.
            team_id: its team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        path = {"name": check_volume_name(volume)}
        found = await self._transport.request(
            LIST_BUCKET_TRANSFERS, BucketTransferList, path=path, team=team_id
        )
        return found.transfers

    async def get(
        self, volume: str, transfer_id: str, *, team_id: str | None = None
    ) -> BucketTransfer:
        """Reads a copy.

        Args:
            volume: name of the volume.
            transfer_id: the copy.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume or copy.
            APIError: any other failure.
        """
        return await self._transport.request(
            GET_BUCKET_TRANSFER, BucketTransfer, path=_path(volume, transfer_id), team=team_id
        )

    async def cancel(self, volume: str, transfer_id: str, *, team_id: str | None = None) -> None:
        """Cancels a copy; files that were copied stay. One that has ended stays as it is.

        Args:
            volume: name of the volume.
            transfer_id: the copy.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume or copy.
            APIError: any other failure.
        """
        await self._transport.request(
            CANCEL_BUCKET_TRANSFER, path=_path(volume, transfer_id), team=team_id
        )

    async def wait(
        self,
        volume: str,
        transfer_id: str,
        *,
        timeout: float = 24 * 3600,
        team_id: str | None = None,
    ) -> BucketTransfer:
        """Waits until a copy is complete.

        Args:
            volume: name of the volume.
            transfer_id: the copy.
            timeout: seconds, above 0.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            BucketTransferError: it failed or was cancelled.
            BucketTransferTimeoutError: a ``TimeoutError``; it goes on.
            NotFoundError: there is no such volume or copy.
            APIError: its state could not be read.
        """
        _path(volume, transfer_id)
        check_seconds("timeout", timeout)
        return await wait_until_copied(
            self._schedules.get(), (team_id, volume, transfer_id), timeout
        )

    async def _look(self, keys: builtins.list[Key]) -> Mapping[Key, BucketTransfer]:
        """States for the poll schedule, which asks for one copy at a time."""
        return {key: await self.get(key[1], key[2], team_id=key[0]) for key in keys}

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)


def _path(volume: str, transfer_id: str) -> dict[str, str]:
    return {"name": check_volume_name(volume), "transfer_id": check_id("transfer_id", transfer_id)}
