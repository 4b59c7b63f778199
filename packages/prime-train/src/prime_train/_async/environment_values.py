"""Secrets and variables of environments."""

from __future__ import annotations

import builtins
import re

from pydantic import SecretStr

from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id
from prime_core.models import encode_request
from prime_core.secret_values import check_value, kept_out_of_errors
from prime_train.models.environment_requests import NamedValueBody
from prime_train.models.environments import (
    EnvironmentSecret,
    EnvironmentSecretLink,
    EnvironmentVariable,
    SecretList,
    VariableList,
)
from prime_train.operations import (
    CREATE_ENVIRONMENT_SECRET,
    CREATE_ENVIRONMENT_VARIABLE,
    DELETE_ENVIRONMENT_SECRET,
    DELETE_ENVIRONMENT_VARIABLE,
    LINK_ENVIRONMENT_SECRET,
    LIST_ENVIRONMENT_SECRETS,
    LIST_ENVIRONMENT_VARIABLES,
    UNLINK_ENVIRONMENT_SECRET,
    UPDATE_ENVIRONMENT_SECRET,
    UPDATE_ENVIRONMENT_VARIABLE,
)

__all__ = ["AsyncEnvironmentValues"]

_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


class AsyncEnvironmentValues(AsyncResource):
    """The part of `AsyncEnvironments` that keeps secrets and variables.

    At run time a variable yields to a linked secret of its name, and that to one of the
    environment's own.
    """

    async def list_secrets(self, environment_id: str) -> builtins.list[EnvironmentSecret]:
        """Reads which secrets an environment has, own and linked ones, without their values.

        Args:
            environment_id: the environment.

        Raises:
            NotFoundError: there is no such environment.
            APIError: any other failure.
        """
        found = await self._transport.request(
            LIST_ENVIRONMENT_SECRETS, SecretList, path=_within(environment_id)
        )
        return found.data

    async def create_secret(
        self,
        environment_id: str,
        name: str,
        value: str | SecretStr,
        *,
        description: str | None = None,
    ) -> EnvironmentSecret:
        """Gives an environment a secret of its own. Its value can't be read again.

        Args:
            environment_id: the environment.
            name: upper-case letters, digits and underscores, a letter first.
            value: the secret.
            description: in your words.

        Raises:
            ConflictError: the name is taken.
            ValueError: an impossible name; nothing was sent.
            APIError: any other failure.
        """
        kept = check_value(value, is_file=False)
        with kept_out_of_errors(kept):
            return await self._transport.request(
                CREATE_ENVIRONMENT_SECRET,
                EnvironmentSecret,
                path=_within(environment_id),
                body=_body(name, kept, description),
            )

    async def update_secret(
        self,
        environment_id: str,
        secret_id: str,
        *,
        name: str | None = None,
        value: str | SecretStr | None = None,
        description: str | None = None,
    ) -> EnvironmentSecret:
        """Changes a secret of an environment's own; what is None stays as it is.

        Args:
            environment_id: the environment.
            secret_id: the secret.
            name: as for `create_secret`.
            value: likewise.
            description: likewise.

        Raises:
            NotFoundError: there is no such secret.
            ValueError: nothing to change; nothing was sent.
            APIError: any other failure.
        """
        kept = None if value is None else check_value(value, is_file=False)
        with kept_out_of_errors(kept):
            return await self._transport.request(
                UPDATE_ENVIRONMENT_SECRET,
                EnvironmentSecret,
                path={**_within(environment_id), "secret_id": check_id("secret_id", secret_id)},
                body=_body(name, kept, description),
            )

    async def delete_secret(self, environment_id: str, secret_id: str) -> None:
        """Deletes a secret of an environment's own.

        Args:
            environment_id: the environment.
            secret_id: the secret.

        Raises:
            NotFoundError: there is no such secret.
            APIError: any other failure.
        """
        path = {**_within(environment_id), "secret_id": check_id("secret_id", secret_id)}
        await self._transport.request(DELETE_ENVIRONMENT_SECRET, path=path)

    async def link_secret(
        self, environment_id: str, global_secret_id: str
    ) -> EnvironmentSecretLink:
        """Lets an environment use a secret of the account.

        Args:
            environment_id: the environment.
            global_secret_id: the account's secret.

        Raises:
            ConflictError: it is linked already, or its name is taken.
            NotFoundError: there is no such environment or secret.
            APIError: any other failure.
        """
        return await self._transport.request(
            LINK_ENVIRONMENT_SECRET,
            EnvironmentSecretLink,
            path=_link(environment_id, global_secret_id),
            body=b"{}",
        )

    async def unlink_secret(self, environment_id: str, global_secret_id: str) -> None:
        """Ends an environment's use of a secret of the account, which stays.

        Args:
            environment_id: the environment.
            global_secret_id: the account's secret.

        Raises:
            NotFoundError: it is not linked.
            APIError: any other failure.
        """
        path = _link(environment_id, global_secret_id)
        await self._transport.request(UNLINK_ENVIRONMENT_SECRET, path=path)

    async def list_variables(self, environment_id: str) -> builtins.list[EnvironmentVariable]:
        """Reads the plain variables of an environment.

        Args:
            environment_id: the environment.

        Raises:
            NotFoundError: there is no such environment.
            APIError: any other failure.
        """
        found = await self._transport.request(
            LIST_ENVIRONMENT_VARIABLES, VariableList, path=_within(environment_id)
        )
        return found.data

    async def create_variable(
        self, environment_id: str, name: str, value: str, *, description: str | None = None
    ) -> EnvironmentVariable:
        """Gives an environment a plain variable.

        Args:
            environment_id: the environment.
            name: as for `create_secret`.
            value: what it holds.
            description: in your words.

        Raises:
            ConflictError: the name is taken.
            ValueError: an impossible name; nothing was sent.
            APIError: any other failure.
        """
        return await self._transport.request(
            CREATE_ENVIRONMENT_VARIABLE,
            EnvironmentVariable,
            path=_within(environment_id),
            body=_body(name, value, description),
        )

    async def update_variable(
        self,
        environment_id: str,
        variable_id: str,
        *,
        name: str | None = None,
        value: str | None = None,
        description: str | None = None,
    ) -> EnvironmentVariable:
        """Changes a variable; what is None stays as it is.

        Args:
            environment_id: the environment.
            variable_id: the variable.
            name: as for `create_secret`.
            value: what it holds.
            description: in your words.

        Raises:
            NotFoundError: there is no such variable.
            ValueError: nothing to change; nothing was sent.
            APIError: any other failure.
        """
        return await self._transport.request(
            UPDATE_ENVIRONMENT_VARIABLE,
            EnvironmentVariable,
            path={**_within(environment_id), "variable_id": check_id("variable_id", variable_id)},
            body=_body(name, value, description),
        )

    async def delete_variable(self, environment_id: str, variable_id: str) -> None:
        """Deletes a variable.

        Args:
            environment_id: the environment.
            variable_id: the variable.

        Raises:
            NotFoundError: there is no such variable.
            APIError: any other failure.
        """
        path = {**_within(environment_id), "variable_id": check_id("variable_id", variable_id)}
        await self._transport.request(DELETE_ENVIRONMENT_VARIABLE, path=path)


def _within(environment_id: str) -> dict[str, str]:
    return {"environment_id": check_id("environment_id", environment_id)}


def _link(environment_id: str, global_secret_id: str) -> dict[str, str]:
    secret_id = check_id("global_secret_id", global_secret_id)
    return {**_within(environment_id), "global_secret_id": secret_id}


def _body(name: str | None, value: str | SecretStr | None, description: str | None) -> bytes:
    if name is None and value is None and description is None:
        raise ValueError("nothing to change is given")
    if name is not None and not _NAME.fullmatch(name):
        raise ValueError(f"name is upper-case letters, digits and underscores, not {name!r}")
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    return encode_request(NamedValueBody(name=name, value=text, description=description))
