"""What the tables of a config have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Count", "EnvVars", "Known", "OpenSection", "Section"]

Count: TypeAlias = Annotated[int, Field(ge=0)]

EnvVars: TypeAlias = dict[str, str | None]


@dataclass(frozen=True)
class Known:
    """The documented words of a string; another is kept and reported.

    Args:
        words: the words.
    """

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)


class Section(BaseModel):
    """A table of the config. Keys that it does not name are kept and reported.

    A subclass may declare:
        variants: the `type` that alone has a field.
        is_open: keys beyond the named ones belong to somebody else, such as an environment or
            vLLM, so they are not reported.
    """

    model_config = ConfigDict(
        extra="allow",
        # As the platform has it: a string is no number, and neither is a boolean.
        strict=True,
        # A change here would change nothing of what is sent.
        frozen=True,
        defer_build=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    variants: ClassVar[Mapping[str, str]] = {}
    is_open: ClassVar[bool] = False


class OpenSection(Section):
    """A table whose further keys are somebody else's."""

    is_open: ClassVar[bool] = True
