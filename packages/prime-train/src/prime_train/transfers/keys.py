"""Temporary keys of a transfer: what they open, and until when."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from prime_core.concurrency import run_each
from prime_core.errors import APIError, APIResponseError
from prime_train.models.volume_transfers import VolumeTransferRoute

__all__ = ["KeyRing", "TemporaryKeys", "keys_of"]

T = TypeVar("T")

# Seconds before their end at which keys are renewed, and at which they must be.
RENEWED_BEFORE = 300.0
NEEDED_BEFORE = 120.0
# Of keys whose end is not said: the documented time that those of a put live.
USUAL_LIFE = 900.0
PAUSE = 10.0
_ADDRESS = re.compile(r"https?://[!-~]+")
_PRINTABLE = re.compile(r"[ -~]*")


@dataclass(frozen=True)
class TemporaryKeys:
    """Keys of an object store that open one volume, or a part of it, for some minutes."""

    endpoint: str
    bucket: str
    prefix: str
    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(repr=False)
    expires_at: float
    lease_id: str | None

    @property
    def left(self) -> float:
        """Seconds until they expire."""
        return self.expires_at - time.time()


def keys_of(route: VolumeTransferRoute) -> TemporaryKeys:
    """The keys of a route that goes to an object store.

    Raises:
        APIResponseError: something of them is missing.
    """
    token = route.session_token
    if not (
        _ADDRESS.fullmatch(route.endpoint or "")
        and _PRINTABLE.fullmatch("" if token is None else token.get_secret_value())
        and route.bucket
        and route.access_key_id
        and route.secret_access_key
        and (not route.prefix or route.prefix.endswith("/"))
    ):
        raise APIResponseError("The platform's transfer route lacks an address or its keys.")
    assert route.endpoint
    assert route.bucket
    return TemporaryKeys(
        endpoint=route.endpoint,
        bucket=route.bucket,
        prefix=route.prefix or "",
        access_key_id=route.access_key_id,
        secret_access_key=route.secret_access_key.get_secret_value(),
        session_token=None if token is None else token.get_secret_value(),
        expires_at=(
            time.time() + USUAL_LIFE if route.expires_at is None else route.expires_at.timestamp()
        ),
        lease_id=route.lease_id,
    )


class KeyRing:
    """The keys of one transfer, renewed ahead of their end.

    Args:
        keys: the first ones.
        renew: asks for the next ones.
    """

    def __init__(self, keys: TemporaryKeys, renew: Callable[[], Awaitable[TemporaryKeys]]) -> None:
        self._keys = keys
        self._renew = renew
        self._lock = asyncio.Lock()

    @property
    def prefix(self) -> str:
        """What the volume's keys begin with in the store."""
        return self._keys.prefix

    @property
    def lease_id(self) -> str | None:
        """What holds the volume for a put."""
        return self._keys.lease_id

    async def current(self) -> TemporaryKeys:
        """Keys that live for two minutes more."""
        if self._keys.left < NEEDED_BEFORE:
            await self.renewed(self._keys)
        return self._keys

    async def renewed(self, stale: TemporaryKeys) -> None:
        """Renews keys, unless somebody has meanwhile."""
        async with self._lock:
            if self._keys is stale:
                self._keys = await self._renew()

    async def keep(self) -> None:
        """Renews the keys for as long as the transfer runs; ends by cancellation only.

        Also while nothing is sent, as when a large file is read for its checksum: the hold on
        the volume ends with the keys.

        Raises:
            APIError: they could not be renewed before they were needed.
        """
        while True:
            keys = self._keys
            await asyncio.sleep(max(keys.left - RENEWED_BEFORE, 0.0))
            try:
                await self.renewed(keys)
            except APIError as error:
                refused = error.status_code is not None and error.status_code < 500
                if refused or self._keys.left < NEEDED_BEFORE:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                # New ones that are as short-lived are not asked for over and over.
                await asyncio.sleep(PAUSE)

    async def work(
        self, work: Callable[[T], Awaitable[None]], items: Iterable[T], *, limit: int
    ) -> None:
        """Works on items, so many at once, while the keys are kept; the first failure ends it."""
        keeping = asyncio.ensure_future(self.keep())
        working = asyncio.ensure_future(run_each(work, items, limit=limit))
        try:
            await asyncio.wait([keeping, working], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                keeping.result()  # raises: it ends by a failure only
            await working
        finally:
            for task in (keeping, working):
                task.cancel()
            await asyncio.gather(keeping, working, return_exceptions=True)
