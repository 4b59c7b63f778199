"""What can go wrong with inference, beyond the errors of every call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prime_core.errors import (
    APIError,
    BadRequestError,
    NotFoundError,
    PrimeError,
    ValidationError,
    rebuilt,
)

__all__ = ["ModelNotFoundError", "ResultFileError", "named", "naming_models"]

_CODES = frozenset({"model_not_found", "not_found_error"})


class ModelNotFoundError(NotFoundError):
    """There is no such model, it was withdrawn, or the account may not use it.

    The catalogue, ``client.models.list()``, tells which there are; some that it lists may be
    withdrawn all the same.
    """


class ResultFileError(PrimeError, OSError):
    """The file of results can't be used: it can't be read or written, or is something else."""


@contextmanager
def naming_models(*, lookup: bool = False) -> Iterator[None]:
    """Raises `ModelNotFoundError` for a refusal that says that there is no such model.

    Args:
        lookup: whether the model is all that is asked for: then any refusal says so.
    """
    try:
        yield
    except APIError as error:
        raise named(error, lookup=lookup) from error.__cause__


def named(error: APIError, *, lookup: bool = False) -> APIError:
    """A failure, as `ModelNotFoundError` where it says that there is no such model."""
    if not (
        isinstance(error, NotFoundError)
        or error.code in _CODES
        or (lookup and isinstance(error, BadRequestError | ValidationError))
    ):
        return error
    named = rebuilt(ModelNotFoundError, error)
    if (error.body or "").lstrip().startswith("<"):
        message, *others = error.args
        named.args = (f"{message}; that is an HTML page: check the base URL, too", *others)
    return named
