"""Slurm on a team's dedicated clusters."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence

from prime_compute.models import (
    SlurmCluster,
    SlurmClusterList,
    SlurmConnection,
    SlurmMember,
    SlurmMemberList,
    SlurmMemberRequest,
    SlurmResize,
    SlurmResizeRequest,
)
from prime_compute.operations import (
    ADD_SLURM_MEMBER,
    DEPLOY_SLURM_CLUSTER,
    GET_SLURM_CONNECTION,
    LIST_SLURM_CLUSTERS,
    LIST_SLURM_MEMBERS,
    REMOVE_SLURM_MEMBER,
    RESIZE_SLURM_CLUSTER,
)
from prime_compute.resizing import (
    SlurmSchedule,
    rows_of,
    told_apart,
    wait_until_resized,
)
from prime_compute.waiting import is_transient
from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id, check_public_key, check_seconds, team_of
from prime_core.models import encode_request
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules

__all__ = ["AsyncSlurm"]


class AsyncSlurm(AsyncResource):
    """Deploys, resizes and opens Slurm clusters. Made by `AsyncComputeClient.slurm`.

    Changes are the business of the team's admins, and of teams whose self-service is on.

    Follows the documented pages "api-reference/slurm-clusters".

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules: PerLoop[SlurmSchedule] = PerLoop(
            lambda: PollSchedule(self._look, transient=is_transient, batch=1)
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._client,)

    async def list(self, team_id: str | None = None) -> builtins.list[SlurmCluster]:
        """Reads all deployments of a team.

        Args:
            team_id: the team; the configured one by default.

        Raises:
            ConfigurationError: no team is named; nothing was sent.
            ForbiddenError: the caller does not belong to the team; or `NotFoundError`.
            APIError: any other failure.
        """
        path = {"team_id": team_of(self._client.config, team_id)}
        return (
            await self._transport.request(LIST_SLURM_CLUSTERS, SlurmClusterList, path=path)
        ).data

    async def deploy(
        self, settings: Mapping[str, object], *, team_id: str | None = None
    ) -> SlurmCluster:
        """Deploys Slurm on a dedicated cluster of a team.

        It is sent once; after an error without an answer, look for it in `list` first: it holds
        nodes, and no documented call gives it up again.

        Args:
            settings: what the platform asks for, as a JSON object. Its fields are not
                documented, so they are sent as they are.
            team_id: the team; the configured one by default.

        Returns:
            The deployment, PENDING; `list` tells how it goes on.

        Raises:
            BadRequestError: it can't be planned so, for lack of nodes or for a conflict of ports;
                or `ConflictError`.
            ForbiddenError: the caller is no admin of the team, or self-service is off.
            ConfigurationError: no team is named; nothing was sent.
            APIError: any other failure.
        """
        path = {"team_id": team_of(self._client.config, team_id)}
        body = json.dumps(dict(settings), allow_nan=False).encode()
        return await self._transport.request(
            DEPLOY_SLURM_CLUSTER, SlurmCluster, path=path, body=body
        )

    async def connection(self, job_id: str) -> SlurmConnection:
        """Reads how to reach a RUNNING deployment.

        Args:
            job_id: the deployment, by the ``id`` of its row.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            ConflictError: it does not run.
            APIError: any other failure.
        """
        path = {"cluster_id": check_id("job_id", job_id)}
        return await self._transport.request(GET_SLURM_CONNECTION, SlurmConnection, path=path)

    async def list_members(
        self, job_id: str, *, team_id: str | None = None
    ) -> builtins.list[SlurmMember]:
        """Reads all Linux accounts of a deployment.

        Args:
            job_id: the deployment.
            team_id: the team; the configured one by default.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            ConfigurationError: no team is named; nothing was sent.
            APIError: any other failure.
        """
        answer = await self._transport.request(
            LIST_SLURM_MEMBERS, SlurmMemberList, path=self._path(job_id, team_id)
        )
        return answer.data

    async def add_member(
        self,
        job_id: str,
        username: str,
        ssh_authorized_keys: Sequence[str],
        *,
        linked_user_id: str | None = None,
        team_id: str | None = None,
    ) -> SlurmMember:
        """Lets somebody in, with a Linux account of their own.

        It is sent once; after an error without an answer, look for it in `list_members` first.

        Args:
            job_id: the deployment.
            username: of the account.
            ssh_authorized_keys: public keys, one OpenSSH line each.
            linked_user_id: the user of the platform that it belongs to.
            team_id: the team; the configured one by default.

        Raises:
            ValueError: no user name, or no public key; nothing was sent.
            ConflictError: there is one of this name.
            ForbiddenError: the caller is no admin of the team.
            APIError: any other failure.
        """
        if isinstance(ssh_authorized_keys, str):
            raise TypeError("ssh_authorized_keys is a list of keys, not one string")
        fields: dict[str, object] = {
            "username": username,
            "ssh_authorized_keys": [
                check_public_key("each of ssh_authorized_keys", key) for key in ssh_authorized_keys
            ],
        }
        if linked_user_id is not None:
            fields["linked_user_id"] = check_id("linked_user_id", linked_user_id)
        return await self._transport.request(
            ADD_SLURM_MEMBER,
            SlurmMember,
            path=self._path(job_id, team_id),
            body=encode_request(SlurmMemberRequest.model_validate(fields)),
        )

    async def remove_member(
        self, job_id: str, username: str, *, team_id: str | None = None
    ) -> None:
        """Ends a Linux account.

        Args:
            job_id: the deployment.
            username: of the account.
            team_id: the team; the configured one by default.

        Raises:
            NotFoundError: there is none of this name, or no such deployment.
            ForbiddenError: the caller is no admin of the team.
            APIError: any other failure.
        """
        path = {**self._path(job_id, team_id), "username": check_id("username", username)}
        await self._transport.request(REMOVE_SLURM_MEMBER, path=path)

    async def resize(
        self, job_id: str, num_nodes: int, *, team_id: str | None = None
    ) -> SlurmResize:
        """Changes how many nodes a RUNNING deployment has, as far as nodes are idle.

        It is sent once. `wait_for_resize` waits until the deployment has them.

        Args:
            job_id: the deployment.
            num_nodes: how many there shall be: 1 to 64, or to what it has where that is more.
            team_id: the team; the configured one by default.

        Returns:
            What came of it, which may be less than was asked for.

        Raises:
            ValueError: no whole number of at least 1; nothing was sent.
            BadRequestError: too many, or not enough capacity.
            ForbiddenError: the key lacks ``factory:write``, the caller is no admin of the team,
                or self-service is off.
            NotFoundError: the team has none of this id.
            ConflictError: it does not run, is being resized, or too few nodes are idle: look at
                its state before you try again.
            SlurmResizeUnverifiedError: a `ServerError`; whether it was changed is not known:
                see `list` before you try again.
            SlurmUnavailableError: a `ServerError`; nothing was changed: try again.
            APIError: any other failure.
        """
        body = encode_request(SlurmResizeRequest(num_nodes=num_nodes))
        with told_apart():
            return await self._transport.request(
                RESIZE_SLURM_CLUSTER, SlurmResize, path=self._path(job_id, team_id), body=body
            )

    async def wait_for_resize(
        self,
        before: SlurmCluster,
        resize: SlurmResize,
        *,
        team_id: str | None = None,
        timeout: float = 300,
    ) -> SlurmCluster:
        """Waits until a deployment has the GPUs that a resize left it with.

        Args:
            before: its row, read before the resize.
            resize: what `resize` returned.
            team_id: the team; the configured one by default.
            timeout: seconds, above 0. It is looked at every 5 s.

        Returns:
            Its row now.

        Raises:
            SlurmWaitTimeoutError: a ``TimeoutError``; not in time.
            SlurmNotRunningError: it has ended meanwhile.
            ValueError: a wrong argument, or a row that is not of this resize.
            APIError: its state could not be read.
        """
        check_seconds("timeout", timeout)
        team = team_of(self._client.config, team_id)
        return await wait_until_resized(self._schedules.get(), team, before, resize, timeout)

    async def _look(self, team_ids: builtins.list[str]) -> Mapping[str, Mapping[str, SlurmCluster]]:
        """Rows for the poll schedule, which asks for one team at a time."""
        return {team_id: rows_of(await self.list(team_id)) for team_id in team_ids}

    def _path(self, job_id: str, team_id: str | None) -> dict[str, str]:
        return {
            "team_id": team_of(self._client.config, team_id),
            "job_id": check_id("job_id", job_id),
        }

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)
