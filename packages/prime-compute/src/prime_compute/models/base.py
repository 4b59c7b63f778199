"""Bases of the models of this package."""

from __future__ import annotations

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from prime_core.exact import ExactNumbers
from prime_core.models import ResponseModel

__all__ = ["CamelModel"]


class CamelModel(ExactNumbers, ResponseModel):
    """Base of answers in camelCase, which may hold prices; snake_case is read, too."""

    model_config = ConfigDict(alias_generator=to_camel)
