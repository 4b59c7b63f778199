"""People, their teams, and what they may do."""

from __future__ import annotations

from pydantic import Field

from prime_compute.models.base import CamelModel
from prime_compute.models.listing import OffsetList
from prime_core.models import OpenEnum, RequestModel, ResponseModel, StrEnum, UtcDatetime


class TeamRole(StrEnum):
    """What somebody is in a team."""

    ADMIN = "ADMIN"
    MEMBER = "MEMBER"

    @classmethod
    def _missing_(cls, value: object) -> TeamRole | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class Team(CamelModel):
    """A team that the caller belongs to. Follows the page "api-reference/teams".

    Attributes:
        team_id: names it.
        name: for people.
        slug: its public name.
        role: what the caller is in it.
        created_at: when the caller joined.
    """

    team_id: str
    name: str
    slug: str | None = None
    role: OpenEnum[TeamRole]
    created_at: UtcDatetime


class TeamList(OffsetList):
    """A part of the caller's teams.

    Attributes:
        data: the teams.
    """

    data: list[Team]


class TeamMember(CamelModel):
    """Somebody who belongs to a team.

    Attributes:
        user_id: names the person.
        user_name: for people.
        user_email: their address.
        role: what they are in the team.
        joined_at: when they joined.
    """

    user_id: str
    user_name: str | None = None
    user_email: str | None = None
    role: OpenEnum[TeamRole]
    joined_at: UtcDatetime


class TeamMemberList(OffsetList):
    """A part of a team's members.

    Attributes:
        data: the members.
    """

    data: list[TeamMember]


class Permission(ResponseModel):
    """What a key may do in one area.

    Attributes:
        read: look at things.
        write: make, change and delete them.
    """

    read: bool
    write: bool


class AccountLimits(ResponseModel):
    """Limits of the chosen wallet; None sets none.

    Attributes:
        sandbox_total_cpu_limit: CPU cores of all sandboxes.
        vm_sandbox_creation_burst_limit: creations of sandboxes in 10 s.
        vm_sandbox_limit: sandboxes that are virtual machines, at once.
        vm_sandbox_gpu_limit: GPUs of all of these.
        tunnel_limit: tunnels at once.
        tunnel_creations_per_hour_limit: creations of tunnels in an hour.
        tunnel_ttl_hours: the longest life of a tunnel.
    """

    sandbox_total_cpu_limit: int | None = None
    vm_sandbox_creation_burst_limit: int | None = None
    vm_sandbox_limit: int | None = None
    vm_sandbox_gpu_limit: int | None = None
    tunnel_limit: int | None = None
    tunnel_creations_per_hour_limit: int | None = None
    tunnel_ttl_hours: int | None = None


class KeyLimits(ResponseModel):
    """Limits of the API key itself; None sets none.

    Attributes:
        max_concurrent_sandboxes: sandboxes at once.
        max_sandbox_creations_per_hour: creations of sandboxes in an hour.
        max_sandbox_cpu_cores: CPU cores of all sandboxes.
        max_sandbox_gpu_count: GPUs of all sandboxes.
        max_concurrent_tunnels: tunnels at once.
        max_tunnel_creations_per_hour: creations of tunnels in an hour.
        max_tunnel_ttl_hours: the longest life of a tunnel.
    """

    max_concurrent_sandboxes: int | None = None
    max_sandbox_creations_per_hour: int | None = None
    max_sandbox_cpu_cores: int | None = None
    max_sandbox_gpu_count: int | None = None
    max_concurrent_tunnels: int | None = None
    max_tunnel_creations_per_hour: int | None = None
    max_tunnel_ttl_hours: int | None = None


class User(CamelModel):
    """A person's account.

    Attributes:
        id: names it.
        role: on the platform: ``USER``, ``MANAGER``, ``ADMIN``.
        created_at: when it was opened.
        name: for people.
        slug: the public user name; None until it is chosen.
        email: the address.
        email_verified: whether that was confirmed.
    """

    id: str | None = None
    role: str | None = None
    created_at: UtcDatetime | None = None
    name: str | None = None
    slug: str | None = None
    email: str
    email_verified: bool | None = None


class Whoami(User):
    """The caller, and what the API key may do. Follows the page "api-reference/user/get-whoami".

    `prime_compute.effective_limits` tells which limits count.

    Attributes:
        scope: permissions by area; None is no permission.
        account_limits: limits of the chosen wallet.
        key_limits: limits of the key.
    """

    scope: dict[str, Permission | None] = Field(default_factory=dict)
    account_limits: AccountLimits | None = Field(None, alias="account_limits")
    key_limits: KeyLimits | None = Field(None, alias="key_limits")


class WhoamiAnswer(ResponseModel):
    """The answer that holds the caller."""

    data: Whoami


class UserAnswer(ResponseModel):
    """The answer that holds a user."""

    data: User


class SlugRequest(RequestModel):
    """A public user name: 3 to 30 of a-z, 0-9 and the dash."""

    slug: str = Field(pattern="^[a-z0-9-]{3,30}$")


class ApiToken(ResponseModel):
    """An API key, without its value. What else the platform tells is kept, as attributes.

    Attributes:
        id: names it in `AsyncTokens.disable` and `AsyncTokens.delete`.
    """

    id: str


class ApiTokenList(OffsetList):
    """A part of the caller's API keys.

    Attributes:
        data: the keys.
    """

    data: list[ApiToken]
