"""Which environment a name, a slug or an id means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id
from prime_core.errors import APIResponseError
from prime_core.models import encode_request
from prime_train.models.environment_requests import LookupBody, ResolveBody
from prime_train.models.environments import Environment, ResolvedEnvironment
from prime_train.models.evaluations import EnvironmentReference
from prime_train.operations import GET_ENVIRONMENT, LOOKUP_ENVIRONMENT, RESOLVE_ENVIRONMENT
from prime_train.slugs import split_slug

__all__ = ["AsyncEnvironmentLookup"]


class AsyncEnvironmentLookup(AsyncResource):
    """The part of `AsyncEnvironments` that finds them."""

    async def resolve(
        self,
        name: str,
        *,
        visibility: Literal["PUBLIC", "PRIVATE"] | None = None,
        owner_slug: str | None = None,
        team_slug: str | None = None,
        team_id: str | None = None,
    ) -> ResolvedEnvironment:
        """Finds an environment of the caller's by its name, or makes one without files.

        Args:
            name: its name, without the owner.
            visibility: of one that is made.
            owner_slug: whose it is, over the others.
            team_slug: the team whose it is.
            team_id: likewise, by id; None takes the client's, "" is the personal account.

        Raises:
            BadRequestError: the user has no slug yet, among others.
            APIError: any other failure.
        """
        if "/" in check_id("name", name):
            raise ValueError(f"name is without the owner, unlike {name!r}")
        body = ResolveBody(
            name=name, visibility=visibility, owner_slug=owner_slug, team_slug=team_slug
        )
        return await self._transport.request(
            RESOLVE_ENVIRONMENT, ResolvedEnvironment, body=encode_request(body), team=team_id
        )

    async def lookup(self, environment_id: str) -> ResolvedEnvironment:
        """Reads who an environment of an id belongs to.

        Args:
            environment_id: the environment.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        body = LookupBody(id=check_id("environment_id", environment_id))
        return await self._transport.request(
            LOOKUP_ENVIRONMENT, ResolvedEnvironment, body=encode_request(body)
        )

    async def get(self, slug: str, *, version: str = "latest") -> Environment:
        """Reads an environment at a version; a public one needs no API key.

        Args:
            slug: ``owner/name``.
            version: ``latest``, a version such as ``0.1.0``, or a content hash.

        Raises:
            NotFoundError: there is no such environment or version that the caller can see.
            ValueError: no slug; nothing was sent.
            APIError: any other failure.
        """
        path = {**split_slug(slug), "version": check_id("version", version)}
        return await self._transport.request(GET_ENVIRONMENT, Environment, path=path)

    async def reference(
        self, given: str | EnvironmentReference | Mapping[str, str], team_id: str | None = None
    ) -> EnvironmentReference:
        """What an evaluation names an environment by.

        Args:
            given: a slug, a name of the caller's own, which is made if there is none of it, or a
                mapping with ``id``, ``slug`` or ``name``.
            team_id: the team that names are looked up in.

        Raises:
            NotFoundError: there is no such environment, by slug or id.
            ValueError: none of these.
            APIError: any other failure.
        """
        if isinstance(given, EnvironmentReference):
            return given
        if isinstance(given, str):
            given = {"slug" if "/" in given else "name": given}
        unknown = set(given) - {"id", "slug", "name", "version_id"}
        if unknown or not {"id", "slug", "name"} & set(given):
            raise ValueError(f"an environment has an id, a slug or a name, unlike {dict(given)!r}")
        version_id = given.get("version_id")
        if "id" in given:
            found: str | None = (await self.lookup(given["id"])).id
        elif "slug" in given:
            found = (await self.get(given["slug"])).id
        else:
            found = (await self.resolve(given["name"], team_id=team_id)).id
        if found is None:
            raise APIResponseError("The platform answered with an environment without an id.")
        return EnvironmentReference(id=found, version_id=version_id)
