"""Outbound rules of sandboxes, and private networks between them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from prime_core._async.api_client import AsyncAPIClient
from prime_core.errors import APIError, NotFoundError, PrimeError
from prime_core.models import encode_request
from prime_core.polling import close_schedules
from prime_core.reaper import reaper
from prime_core.sync import across
from prime_sandboxes import networks
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_id, check_seconds
from prime_sandboxes.models import (
    CreateLanNetworkRequest,
    EgressPolicyStatus,
    LanNetwork,
    LanNetworkList,
    LanNetworkMember,
    LanRule,
    PutLanMemberRequest,
    SetLanRulesRequest,
)
from prime_sandboxes.operations import (
    CREATE_LAN_NETWORK,
    DELETE_LAN_NETWORK,
    GET_EGRESS_POLICY,
    GET_LAN_NETWORK,
    LIST_LAN_NETWORKS,
    PUT_LAN_MEMBER,
    REMOVE_LAN_MEMBER,
    SET_EGRESS_POLICY,
    SET_LAN_RULES,
)

__all__ = ["AsyncSandboxNetworks"]

JOIN_TIMEOUT = 120.0


class AsyncSandboxNetworks(AsyncSandboxResource):
    """The part of the client that rules who can reach what.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._policy_schedules = networks.per_loop_schedule(self.get_network)
        self._network_schedules = networks.per_loop_schedule(self.get_lan_network)

    def _close_schedules(self) -> None:
        close_schedules(self._policy_schedules)
        close_schedules(self._network_schedules)
        super()._close_schedules()

    async def get_network(self, sandbox_id: str) -> EgressPolicyStatus:
        """Reads the outbound rules of a sandbox, and whether they are in force.

        Follows the documented page "sandboxes/network-isolation".

        Args:
            sandbox_id: the sandbox.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
        """
        path = {"sandbox_id": check_id(sandbox_id)}
        return await self._transport.request(GET_EGRESS_POLICY, EgressPolicyStatus, path=path)

    async def set_network(
        self,
        sandbox_id: str,
        *,
        allow: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
    ) -> EgressPolicyStatus:
        """Replaces the outbound rules of a running sandbox.

        Saved is not yet in force; see `wait_for_network`. Connections that are open stay open.

        Follows the documented page "sandboxes/network-isolation".

        Args:
            sandbox_id: the sandbox.
            allow: the only destinations to reach, 1 to 1,024; ``["*"]`` is every one. An entry
                is as in `validate_egress_lists`.
            deny: the destinations not to reach, 1 to 1,024; ``["*"]`` cuts the network off,
                DNS included. Exactly one of the two is given.

        Returns:
            The rules as the platform spells them.

        Raises:
            ValueError: not exactly one list, an empty one, or an entry that is none; nothing
                was sent.
            ConflictError: the sandbox does not run.
            APIError: any other failure.
        """
        path = {"sandbox_id": check_id(sandbox_id)}
        body = encode_request(networks.egress_request(allow, deny))
        return await self._transport.request(
            SET_EGRESS_POLICY, EgressPolicyStatus, path=path, body=body
        )

    async def wait_for_network(
        self, sandbox_id: str, timeout_seconds: float = 120
    ) -> EgressPolicyStatus:
        """Waits until the saved outbound rules of a sandbox are in force.

        Args:
            sandbox_id: the sandbox.
            timeout_seconds: how long, above 0.

        Raises:
            NetworkSyncTimeoutError: a ``TimeoutError``; not in time.
            APIError: the state could not be read.
        """
        check_id(sandbox_id)
        limit = check_seconds("timeout_seconds", timeout_seconds)
        return await networks.wait_until_applied(self._policy_schedules.get(), sandbox_id, limit)

    async def create_lan_network(
        self,
        name: str,
        team_id: str | None = None,
        rules: Sequence[LanRule] | None = None,
    ) -> LanNetwork:
        """Creates a private network.

        It is sent once: after a failure that leaves the outcome open the network may exist,
        without members and at no cost; look for it with `list_lan_networks` before you send
        it again.

        Follows the documented page "sandboxes/networks".

        Args:
            name: 1 to 128 characters; need not be unique.
            team_id: the owning team, by default the configured one; "" is the personal account.
            rules: at most 256, in force before a member joins; ``[]`` blocks everything. Without
                them the platform lets every member reach every other.

        Raises:
            ValueError: a name or rule that is none; nothing was sent.
            APIError: a failure, or the platform did not take the rules over: then the network
                is deleted, since it would be open.
        """
        wanted = None if rules is None else list(rules)
        request = CreateLanNetworkRequest(name=name, rules=wanted)
        network = await self._transport.request(
            CREATE_LAN_NETWORK, LanNetwork, body=encode_request(request), team=team_id
        )
        if wanted is not None and not networks.same_rules(wanted, network.rules):
            await self._discard_network(network)
        return network

    async def _discard_network(self, network: LanNetwork) -> None:
        """Deletes a network whose rules were ignored, also when the caller is cancelled."""

        async def delete() -> None:
            with contextlib.suppress(NotFoundError):
                await self.delete_lan_network(network.id)

        owed = reaper.owe(self._transport, f"Network {network.id}", delete)
        try:
            await across(owed.call_in())
        except PrimeError as error:
            raise APIError(
                f"The platform ignored the rules of the new network {network.id}, which could "
                "not be deleted either; delete it: it lets every member reach every other.",
                operation=CREATE_LAN_NETWORK.id,
            ) from error
        raise APIError(
            "The platform ignored the rules of the new network, which was deleted; create it "
            "without rules, and set them with set_lan_rules before a sandbox joins.",
            operation=CREATE_LAN_NETWORK.id,
        )

    async def list_lan_networks(self, team_id: str | None = None) -> list[LanNetwork]:
        """Reads all private networks of an owner, without their members.

        Args:
            team_id: the team, by default the configured one; "" is the personal account.
        """
        answer = await self._transport.request(LIST_LAN_NETWORKS, LanNetworkList, team=team_id)
        return answer.networks

    async def get_lan_network(self, network_id: str) -> LanNetwork:
        """Reads a private network with its rules and members.

        Args:
            network_id: the network.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
        """
        path = {"network_id": check_id(network_id, "network_id")}
        return await self._transport.request(GET_LAN_NETWORK, LanNetwork, path=path)

    async def delete_lan_network(self, network_id: str) -> None:
        """Deletes a private network; its members can reach each other through it no more.

        Args:
            network_id: the network.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
        """
        path = {"network_id": check_id(network_id, "network_id")}
        await self._transport.request(DELETE_LAN_NETWORK, path=path)

    async def set_lan_rules(self, network_id: str, rules: Sequence[LanRule]) -> LanNetwork:
        """Replaces all rules of a private network.

        Follows the documented page "sandboxes/networks", "Rules".

        Args:
            network_id: the network.
            rules: at most 256; ``[]`` blocks everything.

        Returns:
            The network; ``synced`` tells whether the rules are in force yet.

        Raises:
            ValueError: a rule that is none; nothing was sent.
            NotFoundError: there is no such network that the caller can see.
        """
        path = {"network_id": check_id(network_id, "network_id")}
        body = encode_request(SetLanRulesRequest(rules=list(rules)))
        return await self._transport.request(SET_LAN_RULES, LanNetwork, path=path, body=body)

    async def add_lan_member(
        self, network_id: str, sandbox_id: str, tags: Sequence[str] | None = None
    ) -> LanNetworkMember:
        """Adds a running sandbox to a private network, or replaces its tags there.

        Members reach each other at ``<sandbox-id>.sandbox.internal``, as the rules allow.
        `CreateSandboxRequest` takes a network too, to be joined by `wait_for_creation`.

        Follows the documented page "sandboxes/networks".

        Args:
            network_id: the network.
            sandbox_id: a running sandbox of the same owner, in at most 32 networks.
            tags: at most 16, for rules to select it by.

        Returns:
            The member; ``synced`` tells whether that is in force yet.

        Raises:
            ValueError: a tag that is none; nothing was sent.
            ConflictError: the sandbox does not run.
            APIError: any other failure.
        """
        path = {
            "network_id": check_id(network_id, "network_id"),
            "sandbox_id": check_id(sandbox_id),
        }
        if isinstance(tags, str):
            raise ValueError("tags is a list of tags, not one string")
        body = encode_request(PutLanMemberRequest(tags=list(tags or ())))
        return await self._transport.request(PUT_LAN_MEMBER, LanNetworkMember, path=path, body=body)

    async def remove_lan_member(self, network_id: str, sandbox_id: str) -> None:
        """Takes a sandbox out of a private network, which cuts it off right away.

        Args:
            network_id: the network.
            sandbox_id: the sandbox.

        Raises:
            NotFoundError: there is no such network or member.
        """
        path = {
            "network_id": check_id(network_id, "network_id"),
            "sandbox_id": check_id(sandbox_id),
        }
        await self._transport.request(REMOVE_LAN_MEMBER, path=path)

    async def _join_network(self, sandbox_id: str) -> None:
        """Joins a running sandbox to the network that its creation asked for, if it did."""
        join = self._joins.get(sandbox_id)
        if join is None:
            return
        await self.add_lan_member(join.network_id, sandbox_id, join.tags)
        await networks.wait_until_joined(
            self._network_schedules.get(), sandbox_id, join.network_id, JOIN_TIMEOUT
        )
        self._joins.pop(sandbox_id, None)
