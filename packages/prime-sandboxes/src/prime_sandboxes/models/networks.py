"""Private networks between sandboxes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from prime_core.models import RequestModel, ResponseModel, UtcDatetime

MAX_LAN_RULES = 256
MAX_LAN_PORTS = 64
MAX_LAN_TAGS = 16
RESERVED_PORTS = (49983, 2222)
"""Ports of the sandbox API and of SSH, which no rule can expose to the internet."""

_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class LanRule(RequestModel):
    """Who may open TCP connections to whom in a private network, and on which ports.

    Follows the page "sandboxes/networks", "Rules".

    Attributes:
        from_: `*` for every member, `tag:<name>` for members that carry the tag, or `internet`
            to publish ports at a public URL.
        to: `*` or `tag:<name>`.
        ports: 1 to 64 ports; `None` is every port. An `internet` rule must name its ports, and
            not 49983 or 2222.

    Raises:
        pydantic.ValidationError: a `ValueError`; it is no such rule.
    """

    is_checked: ClassVar[bool] = True

    from_: str = Field(validation_alias="from", serialization_alias="from")
    to: str
    ports: list[int] | None = None

    @model_validator(mode="after")
    def _check(self) -> LanRule:
        problem = _problem_of(self) if self.is_checked else None
        if problem:
            raise ValueError(problem)
        return self


class _NewerLanRule(LanRule):
    """A rule of a newer platform: it is kept as it is, and so sent back."""

    model_config = ConfigDict(extra="allow")

    is_checked: ClassVar[bool] = False


def _read_rule(value: object) -> object:
    try:
        return LanRule.model_validate(value)
    except ValueError:
        return _NewerLanRule.model_validate(value)


class LanNetworkMember(ResponseModel):
    """A sandbox in a private network.

    Attributes:
        sandbox_id: the sandbox.
        tags: what rules select it by, as `tag:<name>`.
        synced: whether its membership is in force.
    """

    sandbox_id: str
    tags: list[str]
    synced: bool


class LanNetwork(ResponseModel):
    """A private network. Follows the page "sandboxes/networks".

    Attributes:
        id: names the network in every other call.
        name: the name given at creation; not unique.
        team_id: the owning team; `None` for a personal network.
        rules: what is allowed; nothing else is.
        version: grows with each change of the rules.
        synced: whether the rules are in force.
        created_at: when it was made.
        members: its sandboxes; `None` where the platform leaves them out, as in lists.
    """

    id: str
    name: str
    team_id: str | None = None
    rules: list[Annotated[LanRule, BeforeValidator(_read_rule)]]
    version: int
    synced: bool
    created_at: UtcDatetime
    members: list[LanNetworkMember] | None = None


class LanNetworkList(ResponseModel):
    """The networks of one owner."""

    networks: list[LanNetwork]


def check_lan_tags(tags: Sequence[str]) -> list[str]:
    """Return the tags of a member, each once.

    Raises:
        ValueError: more than 16, or one that is none; it is named by position.
    """
    if isinstance(tags, str):
        raise ValueError("tags is a list of tags, not one string")
    found = list(dict.fromkeys(tags))
    if len(found) > MAX_LAN_TAGS:
        raise ValueError(f"a member has at most {MAX_LAN_TAGS} tags, not {len(found)}")
    for position, tag in enumerate(found):
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise ValueError(
                f"tags[{position}]: a tag is 1 to 63 of a-z, 0-9, '.', '_' and '-', and starts "
                "with a letter or digit"
            )
    return found


def _problem_of(rule: LanRule) -> str | None:
    public = rule.from_ == "internet"
    if not public and not _is_selector(rule.from_):
        return "from_ is '*', 'tag:<name>' or 'internet'"
    if not _is_selector(rule.to):
        return "to is '*' or 'tag:<name>'"
    if rule.ports is None:
        return "an internet rule must name its ports" if public else None
    if not 1 <= len(rule.ports) <= MAX_LAN_PORTS:
        return f"ports holds 1 to {MAX_LAN_PORTS}; leave it out for every port"
    if not all(1 <= port <= 65_535 for port in rule.ports):
        return "ports go from 1 to 65535"
    if public and not set(rule.ports).isdisjoint(RESERVED_PORTS):
        return "ports 49983 and 2222 are reserved and cannot be exposed"
    return None


def _is_selector(text: str) -> bool:
    return text == "*" or (text.startswith("tag:") and bool(_TAG.fullmatch(text[4:])))


class CreateLanNetworkRequest(RequestModel):
    """What network to make.

    Attributes:
        name: 1 to 128 characters; need not be unique.
        rules: at most 256, in force before any member joins; `None` leaves the platform's.
    """

    omits_null: ClassVar[bool] = True

    name: str = Field(min_length=1, max_length=128)
    rules: list[SerializeAsAny[LanRule]] | None = Field(default=None, max_length=MAX_LAN_RULES)


class SetLanRulesRequest(RequestModel):
    """The rules that a network shall have.

    Attributes:
        rules: at most 256, in place of all before; `[]` blocks everything.
    """

    rules: list[SerializeAsAny[LanRule]] = Field(max_length=MAX_LAN_RULES)


class PutLanMemberRequest(RequestModel):
    """The tags that a member shall have.

    Attributes:
        tags: at most 16, in place of all before.
    """

    tags: list[str]

    @field_validator("tags")
    @classmethod
    def _check_tags(cls, value: list[str]) -> list[str]:
        return check_lan_tags(value)
