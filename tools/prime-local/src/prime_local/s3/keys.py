"""Keys of the storage: what each may reach, and until when."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from prime_local.clock import PlatformClock
from prime_local.identifiers import Identifiers
from prime_local.rows import from_row, to_row
from prime_local.s3.errors import S3Error
from prime_local.s3.signing import check_signature, read_authorization
from prime_local.storage import Storage

KIND = "s3_key"


@dataclass
class StorageKey:
    """A key.

    Args:
        id: the access key id.
        bucket: the only one that it reaches.
        objects: the keys of objects that it reaches.
        prefixes: beginnings of keys that it reaches, which it may list, too.
        writes: whether it may change what it reaches.
        token: goes with every request; None for a key that lasts.
        expires_at: when it ends, if ever.
    """

    id: str
    secret: str
    bucket: str
    objects: list[str]
    prefixes: list[str]
    writes: bool
    token: str | None = None
    expires_at: datetime | None = None

    def check(self, bucket: str, key: str, *, listing: bool = False, writing: bool = False) -> None:
        """Refuse what the key may not do.

        Args:
            bucket: the bucket of the request.
            key: the object's key, or the prefix of a list.
            listing: it is a list.
            writing: it is a change.

        Raises:
            S3Error: `AccessDenied`.
        """
        reaches = key.startswith(tuple(self.prefixes)) or (not listing and key in self.objects)
        if bucket != self.bucket or not reaches or (writing and not self.writes):
            raise S3Error("AccessDenied", "The key does not allow this")


class StorageKeys:
    """Every key, by its access key id.

    Args:
        clock: ends them.
        identifiers: makes them.
        storage: keeps them.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, storage: Storage) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._keys: dict[str, StorageKey] = {}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the keys of an earlier platform."""
        self._keys = {row["id"]: from_row(StorageKey, row) for row in rows}

    def make(
        self,
        bucket: str,
        *,
        objects: Iterable[str] = (),
        prefixes: Iterable[str] = (),
        writes: bool,
        lifetime: float | None,
    ) -> StorageKey:
        """Make a key.

        Args:
            bucket: the only one that it reaches.
            objects: keys of objects that it reaches.
            prefixes: beginnings of keys that it reaches.
            writes: whether it may change them.
            lifetime: seconds on the platform clock; None for a key that lasts, without a token.
        """
        self._forget_expired()
        lasts = lifetime is None
        key = StorageKey(
            id=self._identifiers.make("AK", 18).upper(),
            secret=self._identifiers.make("", 40),
            bucket=bucket,
            objects=list(objects),
            prefixes=list(prefixes),
            writes=writes,
            token=None if lasts else self._identifiers.make("", 64),
            expires_at=None if lifetime is None else self._clock.date() + timedelta(0, lifetime),
        )
        self._keys[key.id] = key
        self._storage.save_object(KIND, key.id, to_row(key))
        return key

    def revoke(self, key_id: str) -> None:
        """End a key now."""
        if self._keys.pop(key_id, None) is not None:
            self._storage.save_object(KIND, key_id, None)

    def revoke_all(self, bucket: str, prefix: str) -> None:
        """End the keys that reach nothing but what has a prefix."""
        for key in list(self._keys.values()):
            reached = [*key.objects, *key.prefixes]
            if key.bucket == bucket and all(each.startswith(prefix) for each in reached):
                self.revoke(key.id)

    def find(self, key_id: str, secret: str) -> StorageKey:
        """Return the key with this id and this secret.

        Raises:
            S3Error: `InvalidAccessKeyId`, `SignatureDoesNotMatch` or `ExpiredToken`.
        """
        key = self._keys.get(key_id)
        if key is None:
            raise S3Error("InvalidAccessKeyId", "There is no such access key")
        if not hmac.compare_digest(secret.encode(), key.secret.encode()):
            raise S3Error("SignatureDoesNotMatch", "The secret is not that of this access key")
        if self._expired(key):
            raise S3Error("ExpiredToken", "The token has expired")
        return key

    def identify(self, request: web.Request) -> StorageKey:
        """Return the key that a request is signed with.

        Raises:
            S3Error: `InvalidAccessKeyId`, `InvalidToken`, `ExpiredToken`, or what is wrong with
                the signature.
        """
        authorization = read_authorization(request)
        key = self._keys.get(authorization.access_key)
        if key is None:
            raise S3Error("InvalidAccessKeyId", "There is no such access key")
        check_signature(request, authorization, key.secret)
        token = request.headers.get("x-amz-security-token", "")
        if not hmac.compare_digest(token.encode(), (key.token or "").encode()):
            raise S3Error("InvalidToken", "The token is not the one of this access key")
        if self._expired(key):
            raise S3Error("ExpiredToken", "The token has expired")
        return key

    def _expired(self, key: StorageKey) -> bool:
        return key.expires_at is not None and key.expires_at <= self._clock.date()

    def _forget_expired(self) -> None:
        """Forget keys that ended long ago; one that ended lately is still told so."""
        horizon = self._clock.date() - timedelta(days=1)
        for key in list(self._keys.values()):
            if key.expires_at is not None and key.expires_at < horizon:
                self.revoke(key.id)
