"""Secrets that environments are given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from pydantic import SecretStr

from prime_compute.models import SecretRequest, StoredSecret, StoredSecretList
from prime_compute.models.secrets import StoredSecretAnswer
from prime_compute.operations import (
    CREATE_SECRET,
    DELETE_SECRET,
    GET_SECRET,
    LIST_SECRETS,
    UPDATE_SECRET,
)
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id
from prime_core.models import encode_request
from prime_core.offsets import check_window, iterate_offsets
from prime_core.secret_values import check_value, kept_out_of_errors

__all__ = ["AsyncSecrets"]

PAGE = 100


class AsyncSecrets(AsyncResource):
    """Stores secrets of a person or a team. Made by `AsyncComputeClient.secrets`.

    Values are written and never read: no answer, no repr, no log line and no error has one.

    Args:
        client: the connections.
    """

    async def create(
        self,
        name: str,
        value: str | SecretStr,
        *,
        description: str | None = None,
        is_file: bool = False,
        team_id: str | None = None,
    ) -> StoredSecret:
        """Stores a secret. It is sent once; after an error without an answer, look for it first.

        Args:
            name: at most 255 of A-Z, 0-9 and the underscore, a letter first.
            value: what to keep; not empty.
            description: for people, at most 500 characters.
            is_file: whether ``value`` is a file's content, in base64, of at most 64 KiB.
            team_id: whose it shall be, by default the configured team's; "" is personal.

        Raises:
            ValueError: an impossible name, value or description; nothing was sent.
            ConflictError: there is one of this name.
            ForbiddenError: the caller does not belong to the team.
            APIError: any other failure.
        """
        kept = check_value(value, is_file=is_file)
        fields = _given({"name": name, "value": kept, "description": description})
        if is_file:
            fields["is_file"] = True
        body = encode_request(SecretRequest.model_validate(fields))
        with kept_out_of_errors(kept):
            answer = await self._transport.request(
                CREATE_SECRET, StoredSecretAnswer, body=body, team=team_id
            )
        return answer.data

    async def list(
        self, *, offset: int = 0, limit: int = PAGE, team_id: str | None = None
    ) -> StoredSecretList:
        """Reads a part of the list of secrets; `iter` reads all of them.

        Args:
            offset: secrets to skip, at least 0.
            limit: most secrets to return, at least 1.
            team_id: whose, by default the configured team's; "" is personal.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            ForbiddenError: the caller does not belong to the team.
            APIError: any other failure.
        """
        check_window(offset, limit)
        query = {"offset": offset, "limit": limit}
        return await self._transport.request(
            LIST_SECRETS, StoredSecretList, query=query, team=team_id
        )

    async def iter(self, *, team_id: str | None = None) -> AsyncIterator[StoredSecret]:
        """Reads all secrets, part after part.

        Args:
            team_id: as for `list`.
        """

        async def fetch(offset: int) -> tuple[Sequence[StoredSecret], int]:
            page = await self.list(offset=offset, team_id=team_id)
            return page.data, page.total_count

        async for secret in iterate_offsets(fetch, PAGE, lambda secret: secret.id):
            yield secret

    async def get(self, secret_id: str, *, team_id: str | None = None) -> StoredSecret:
        """Reads what is known of a secret, which is all but its value.

        Args:
            secret_id: the secret.
            team_id: as for `list`.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        path = {"secret_id": check_id("secret_id", secret_id)}
        answer = await self._transport.request(
            GET_SECRET, StoredSecretAnswer, path=path, team=team_id
        )
        return answer.data

    async def update(
        self,
        secret_id: str,
        *,
        name: str | None = None,
        value: str | SecretStr | None = None,
        description: str | None = None,
        team_id: str | None = None,
    ) -> StoredSecret:
        """Changes a secret; None leaves a thing as it is.

        Args:
            secret_id: the secret.
            name: as for `create`.
            value: as for `create`; of a file, its content in base64.
            description: as for `create`; "" for none.
            team_id: as for `list`.

        Raises:
            ValueError: nothing to change, or an impossible value; nothing was sent.
            NotFoundError: there is none of this id that the caller can see.
            ConflictError: there is another one of this name.
            APIError: any other failure.
        """
        path = {"secret_id": check_id("secret_id", secret_id)}
        kept = None if value is None else check_value(value, is_file=False)
        changes = _given({"name": name, "value": kept, "description": description})
        if not changes:
            raise ValueError("pass name, value or description: there is nothing to change")
        body = encode_request(SecretRequest.model_validate(changes))
        with kept_out_of_errors(kept):
            answer = await self._transport.request(
                UPDATE_SECRET, StoredSecretAnswer, path=path, body=body, team=team_id
            )
        return answer.data

    async def delete(self, secret_id: str, *, team_id: str | None = None) -> None:
        """Removes a secret, and its links to environments.

        Args:
            secret_id: the secret.
            team_id: as for `list`.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        path = {"secret_id": check_id("secret_id", secret_id)}
        await self._transport.request(DELETE_SECRET, path=path, team=team_id)


def _given(fields: Mapping[str, str | SecretStr | None]) -> dict[str, str | SecretStr | bool]:
    return {name: value for name, value in fields.items() if value is not None}
