"""Answers that come in an envelope, or without."""

from __future__ import annotations

from pydantic import model_validator

from prime_core.models import ResponseModel

__all__ = ["Wrapped"]


class Wrapped(ResponseModel):
    """Base of answers that newer servers wrap in ``data`` and older ones send bare."""

    @model_validator(mode="before")
    @classmethod
    def _unwrap(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("data"), dict):
            return value["data"]
        return value
