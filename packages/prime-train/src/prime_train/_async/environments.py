"""The environments hub."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Sequence
from typing import Literal

from prime_core.arguments import check_id
from prime_core.models import encode_request
from prime_core.offsets import check_window, iterate_offsets
from prime_train._async.environment_files import AsyncEnvironmentFiles
from prime_train._async.environment_values import AsyncEnvironmentValues
from prime_train.models.environment_requests import ForkBody
from prime_train.models.environments import (
    EnvironmentFork,
    EnvironmentInspection,
    EnvironmentList,
    EnvironmentListItem,
    EnvironmentStatus,
    EnvironmentVersion,
    VersionList,
)
from prime_train.operations import (
    DELETE_ENVIRONMENT,
    DELETE_ENVIRONMENT_VERSION,
    FORK_ENVIRONMENT,
    GET_ENVIRONMENT_STATUS,
    INSPECT_ENVIRONMENT,
    LIST_ENVIRONMENT_VERSIONS,
    LIST_ENVIRONMENTS,
)
from prime_train.slugs import split_slug

__all__ = ["AsyncEnvironments"]

PAGE = 100
MAX_INSPECTED_BYTES = 500_000
SHORTEST_HASH = 8


class AsyncEnvironments(AsyncEnvironmentFiles, AsyncEnvironmentValues):
    """Finds, publishes, fetches and deletes environments. Made by `AsyncTrainClient`.

    Follows the documented pages "tutorials-environments".

    Args:
        client: the connections.
    """

    async def list(
        self,
        *,
        search: str | None = None,
        owner: str | None = None,
        visibility: Literal["PUBLIC", "PRIVATE"] | None = None,
        tags: Sequence[str] = (),
        starred_only: bool = False,
        mine_only: bool = False,
        sort_by: Literal["name", "created_at", "updated_at", "stars"] = "created_at",
        sort_order: Literal["asc", "desc"] = "desc",
        offset: int = 0,
        limit: int = 20,
    ) -> EnvironmentList:
        """Reads a part of the list of environments; `iter` reads all of them.

        Args:
            search: part of a name or a description.
            owner: only those of this slug.
            visibility: only those.
            tags: only those with all of these labels.
            starred_only: only those that the caller likes; needs a key.
            mine_only: only the caller's own; needs a key.
            sort_by: in which order.
            sort_order: up or down.
            offset: environments to skip, at least 0.
            limit: most environments to return, 1 to 100.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit, most=PAGE)
        query = {
            "include_teams": True,
            "search": search,
            "owner": owner,
            "visibility": visibility,
            "tags": builtins.list(tags),
            "starred_only": starred_only or None,
            "mine_only": mine_only or None,
            "sort_by": sort_by,
            "sort_order": sort_order,
            "offset": offset,
            "limit": limit,
        }
        return await self._transport.request(LIST_ENVIRONMENTS, EnvironmentList, query=query)

    async def iter(
        self,
        *,
        search: str | None = None,
        owner: str | None = None,
        visibility: Literal["PUBLIC", "PRIVATE"] | None = None,
        tags: Sequence[str] = (),
        starred_only: bool = False,
        mine_only: bool = False,
    ) -> AsyncIterator[EnvironmentListItem]:
        """Reads all environments, part after part, by name; the filters are those of `list`."""

        async def fetch(offset: int) -> tuple[Sequence[EnvironmentListItem], int]:
            part = await self.list(
                search=search,
                owner=owner,
                visibility=visibility,
                tags=tags,
                starred_only=starred_only,
                mine_only=mine_only,
                sort_by="name",
                sort_order="asc",
                offset=offset,
                limit=PAGE,
            )
            return part.environments, part.total_count

        async for environment in iterate_offsets(fetch, PAGE, lambda each: each.slug):
            yield environment

    async def status(self, slug: str) -> EnvironmentStatus:
        """Reads who can see an environment, and its newest version.

        Args:
            slug: ``owner/name``.

        Raises:
            NotFoundError: there is no such environment that the caller can see.
            APIError: any other failure.
        """
        return await self._transport.request(
            GET_ENVIRONMENT_STATUS, EnvironmentStatus, path=split_slug(slug)
        )

    async def versions(self, slug: str) -> builtins.list[EnvironmentVersion]:
        """Reads the versions of an environment, newest first.

        Args:
            slug: ``owner/name``.

        Raises:
            NotFoundError: there is no such environment that the caller can see.
            APIError: any other failure.
        """
        found = await self._transport.request(
            LIST_ENVIRONMENT_VERSIONS, VersionList, path=split_slug(slug)
        )
        return found.data

    async def inspect(
        self, slug: str, path: str = "", *, version: str = "latest", max_bytes: int = 100_000
    ) -> EnvironmentInspection:
        """Looks into the source of an environment.

        Args:
            slug: ``owner/name``.
            path: a file or folder in the source; the top by default.
            version: ``latest``, a version, or a content hash.
            max_bytes: most bytes of a file, 1 to 500,000.

        Raises:
            NotFoundError: there is nothing there.
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        if not 1 <= max_bytes <= MAX_INSPECTED_BYTES:
            raise ValueError(f"max_bytes is 1 to {MAX_INSPECTED_BYTES}, not {max_bytes}")
        return await self._transport.request(
            INSPECT_ENVIRONMENT,
            EnvironmentInspection,
            path={**split_slug(slug), "version": check_id("version", version)},
            query={"path": path or None, "max_bytes": max_bytes},
        )

    async def fork(
        self, slug: str, *, team_slug: str | None = None, team_id: str | None = None
    ) -> EnvironmentFork:
        """Copies a public environment to the caller or a team.

        It is sent once: after a lost answer, `iter` tells whether it was made.

        Args:
            slug: ``owner/name``.
            team_slug: the team that gets it.
            team_id: likewise, by id; None takes the client's, "" is the personal account.

        Raises:
            ConflictError: there is one of its name.
            NotFoundError: there is no such environment that the caller can see.
            APIError: any other failure.
        """
        return await self._transport.request(
            FORK_ENVIRONMENT,
            EnvironmentFork,
            path=split_slug(slug),
            body=encode_request(ForkBody(team_slug=team_slug)),
            team=team_id,
        )

    async def delete_version(self, slug: str, content_hash: str) -> None:
        """Deletes a version of an environment.

        Args:
            slug: ``owner/name``.
            content_hash: of its source, at least the first 8 characters.

        Raises:
            NotFoundError: there is no such version.
            ValueError: no hash; nothing was sent.
            APIError: any other failure.
        """
        if len(content_hash) < SHORTEST_HASH or not set(content_hash) <= set("0123456789abcdef"):
            raise ValueError("content_hash is at least 8 hexadecimal digits in lower case")
        path = {**split_slug(slug), "version": content_hash}
        await self._transport.request(DELETE_ENVIRONMENT_VERSION, path=path)

    async def delete(self, environment_id: str) -> None:
        """Deletes an environment with all of its versions, secrets and variables.

        Args:
            environment_id: the environment.

        Raises:
            NotFoundError: there is no such environment.
            APIError: any other failure.
        """
        path = {"environment_id": check_id("environment_id", environment_id)}
        await self._transport.request(DELETE_ENVIRONMENT, path=path)
