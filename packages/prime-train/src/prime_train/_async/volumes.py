"""Volumes."""

from __future__ import annotations

from prime_core._async.api_client import AsyncAPIClient
from prime_train._async.bucket_transfers import AsyncBucketTransfers
from prime_train._async.volume_life import AsyncVolumeLife
from prime_train._async.volume_routes import AsyncVolumeRoutes
from prime_train._async.volume_sessions import AsyncVolumeSessions
from prime_train._async.volume_transfers import AsyncVolumeTransfers

__all__ = ["AsyncVolumes"]


class AsyncVolumes(AsyncVolumeLife, AsyncVolumeRoutes, AsyncVolumeTransfers):
    """Volumes: named storage for training. Made by `AsyncTrainClient`.

    Follows the documented page "hosted-training/volumes".

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._sessions = AsyncVolumeSessions(client)
        self._bucket_transfers = AsyncBucketTransfers(client)

    @property
    def sessions(self) -> AsyncVolumeSessions:
        """Shells on volumes."""
        return self._sessions

    @property
    def bucket_transfers(self) -> AsyncBucketTransfers:
        """Copies from and to buckets."""
        return self._bucket_transfers

    def _close_schedules(self) -> None:
        super()._close_schedules()
        self._sessions._close_schedules()
        self._bucket_transfers._close_schedules()
