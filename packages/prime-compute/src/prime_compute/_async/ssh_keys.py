"""SSH keys: whom pods and clusters let in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from prime_compute.models import SshKey, SshKeyChange, SshKeyList, UploadSshKeyRequest
from prime_compute.operations import (
    DELETE_SSH_KEY,
    LIST_SSH_KEYS,
    SET_PRIMARY_SSH_KEY,
    UPLOAD_SSH_KEY,
)
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id, check_public_key
from prime_core.models import encode_request
from prime_core.offsets import check_window, iterate_offsets

__all__ = ["AsyncSshKeys"]

PAGE = 100


class AsyncSshKeys(AsyncResource):
    """Lists, adds and removes SSH public keys. Made by `AsyncComputeClient.ssh_keys`.

    Follows the documented page "api-reference/ssh-keys/get-ssh-keys".

    Args:
        client: the connections.
    """

    async def list(self, *, offset: int = 0, limit: int = PAGE) -> SshKeyList:
        """Reads a part of the caller's keys; `iter` reads all of them.

        Args:
            offset: keys to skip, at least 0.
            limit: most keys to return, at least 1.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit)
        query = {"offset": offset, "limit": limit}
        return await self._transport.request(LIST_SSH_KEYS, SshKeyList, query=query)

    async def iter(self) -> AsyncIterator[SshKey]:
        """Reads all keys of the caller, part after part."""

        async def fetch(offset: int) -> tuple[Sequence[SshKey], int]:
            page = await self.list(offset=offset)
            return page.data, page.total_count

        async for key in iterate_offsets(fetch, PAGE, lambda key: key.id):
            yield key

    async def upload(self, name: str, public_key: str) -> SshKey:
        """Adds a public key. It is sent once; after an error without an answer, look for it first.

        Args:
            name: for people, not empty.
            public_key: one OpenSSH line, such as ``ssh-ed25519 AAAA… laptop``.

        Raises:
            ValueError: no name, or no public key, above all a private one; nothing was sent.
            ValidationError: the platform found the key invalid.
            APIError: any other failure.
        """
        key = check_public_key("public_key", public_key)
        body = encode_request(UploadSshKeyRequest(name=name, public_key=key))
        return await self._transport.request(UPLOAD_SSH_KEY, SshKey, body=body)

    async def set_primary(self, key_id: str) -> SshKeyChange:
        """Makes a key the primary one, in place of the one before.

        Args:
            key_id: the key.

        Raises:
            NotFoundError: the caller has none of this id.
            APIError: any other failure.
        """
        path = {"key_id": check_id("key_id", key_id)}
        return await self._transport.request(
            SET_PRIMARY_SSH_KEY, SshKeyChange, path=path, body=b'{"isPrimary":true}'
        )

    async def delete(self, key_id: str) -> None:
        """Removes a key; machines that have it already keep it.

        Args:
            key_id: the key.

        Raises:
            NotFoundError: the caller has none of this id.
            APIError: any other failure.
        """
        await self._transport.request(DELETE_SSH_KEY, path={"key_id": check_id("key_id", key_id)})
