"""Checks of arguments that several methods take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel
from pydantic import ValidationError as InvalidData

from prime_core.config import Config
from prime_core.errors import ConfigurationError

__all__ = [
    "build",
    "check_flag",
    "check_id",
    "check_ids",
    "check_public_key",
    "check_seconds",
    "check_texts",
    "team_of",
]

M = TypeVar("M", bound=BaseModel)

# The binary form begins with the length of the kind's name: three zero bytes.
_PUBLIC_KEY = re.compile(r"[a-z0-9][a-z0-9@.-]* AAAA[A-Za-z0-9+/]+={0,2}( [^\r\n]*)?")


def check_id(name: str, value: str) -> str:
    """An id that can be sent; a wrong one must not spoil the batch that it travels in."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {type(value).__name__}")
    if value in ("", ".", "..") or not value.isprintable():  # the dots would change the route
        raise ValueError(f"{name} is an id, not {value!r}")
    return value


def check_ids(name: str, values: Sequence[str]) -> list[str]:
    """Ids without repeats."""
    return list(dict.fromkeys(check_id(name, value) for value in check_texts(name, values)))


def check_texts(name: str, values: Sequence[str]) -> list[str]:
    """Several texts; a lone string, whose letters would be taken for them, is refused."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} is a list of ids, not {values!r}")
    return list(values)


def build(model: type[M], fields: Mapping[str, object]) -> M:
    """Makes a request; what its model refuses is told by the field, without pydantic's links.

    Raises:
        ValueError: a field is wrong; its value, which may be a secret, is not quoted.
    """
    try:
        return model.model_validate(fields)
    except InvalidData as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        text = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}: {text}" if where else text) from None


def check_flag(name: str, value: bool) -> bool:
    """True or False, and nothing that only passes for it, such as the text "false"."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    return value


def check_seconds(name: str, value: float) -> float:
    """A finite number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number of seconds, not {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is a number of seconds above 0, not {value!r}")
    return value


def check_public_key(name: str, value: str) -> str:
    """One OpenSSH line with a public key; what is refused is not shown: it may be a private one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {type(value).__name__}")
    line = value.strip()
    if "PRIVATE KEY" in line:
        raise ValueError(f"{name} is a private key: pass the public one, the file's .pub")
    if not _PUBLIC_KEY.fullmatch(line):
        raise ValueError(f"{name} is one line such as 'ssh-ed25519 AAAA… name'")
    return line


def team_of(config: Config, team_id: str | None) -> str:
    """The team that a call is about, where there must be one."""
    team = config.team_id if team_id is None else team_id
    if not team:
        raise ConfigurationError("This belongs to a team: pass team_id= or set PRIME_TEAM_ID.")
    return check_id("team_id", team)
