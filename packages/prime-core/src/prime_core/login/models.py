"""What a login takes and brings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from prime_core.login.keys import KeyPair
from prime_core.models import RequestModel, ResponseModel
from prime_core.secret import Secret

__all__ = [
    "ChallengeAnswer",
    "ChallengeRequest",
    "ChallengeStatus",
    "LoginChallenge",
    "LoginLimits",
    "LoginResult",
    "LoginTeam",
]


class LoginLimits(RequestModel):
    """Limits of the key that a login makes, besides those of the account; None sets none.

    Attributes:
        max_concurrent_sandboxes: sandboxes at once.
        max_sandbox_creations_per_hour: creations of sandboxes in an hour.
        max_sandbox_cpu_cores: CPU cores of all sandboxes.
        max_sandbox_gpu_count: GPUs of all sandboxes.
        max_concurrent_tunnels: tunnels at once.
        max_tunnel_creations_per_hour: creations of tunnels in an hour.
        max_tunnel_ttl_hours: the longest life of a tunnel, at least 1.
    """

    model_config = ConfigDict(alias_generator=to_camel)
    omits_null = True

    max_concurrent_sandboxes: int | None = Field(default=None, ge=0)
    max_sandbox_creations_per_hour: int | None = Field(default=None, ge=0)
    max_sandbox_cpu_cores: int | None = Field(default=None, ge=0)
    max_sandbox_gpu_count: int | None = Field(default=None, ge=0)
    max_concurrent_tunnels: int | None = Field(default=None, ge=0)
    max_tunnel_creations_per_hour: int | None = Field(default=None, ge=0)
    max_tunnel_ttl_hours: int | None = Field(default=None, ge=1)


class ChallengeRequest(RequestModel):
    """What begins a login."""

    model_config = ConfigDict(alias_generator=to_camel)

    encryption_public_key: str
    limits: dict[str, int] | None = None


class ChallengeAnswer(ResponseModel):
    """A login that has begun."""

    challenge: str = Field(min_length=1)
    status_auth_token: str = Field(min_length=1, pattern=r"^[\x21-\x7e]+$")
    limits: dict[str, int | None] | None = None


class ChallengeStatus(ResponseModel):
    """How a login stands."""

    result: str | None = None


class LoginChallenge:
    """A login that waits for somebody to approve it. It stays in its process: it does not pickle.

    Args:
        code: what the dashboard shows too, to be compared.
        url: the page on which to approve it.
        token: asks for the result.
        keys: decrypt the result.
    """

    def __init__(self, code: str, url: str, token: Secret, keys: KeyPair) -> None:
        self.code = code
        self.url = url
        self._token = token
        self._keys = keys

    def __repr__(self) -> str:
        return f"LoginChallenge(code={self.code!r}, url={self.url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a login's challenge holds a private key and does not pickle")


@dataclass(frozen=True)
class LoginTeam:
    """A team that whoever logged in belongs to.

    Args:
        id: names it.
        name: for people.
        slug: its public name.
        role: of whoever logged in.
    """

    id: str
    name: str
    slug: str | None
    role: str | None


@dataclass(frozen=True)
class LoginResult:
    """An approved login. It pickles without the key.

    Args:
        key: the API key; `Secret.reveal` shows it.
        user_id: whose it is; None when that could not be read.
        user_name: that user's name.
        teams: that user's teams; empty when they could not be read.
    """

    key: Secret = field(repr=False)
    user_id: str | None
    user_name: str | None
    teams: tuple[LoginTeam, ...]
