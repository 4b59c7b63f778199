"""What the platform's refusals of runs mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from pydantic import SecretStr

from prime_core.errors import APIError, ConflictError, rebuilt
from prime_core.secret_values import kept_out_of_errors
from prime_train.errors import OnDemandAccessError, VolumeBusyError

__all__ = ["explained"]

# A flag such as "1" is in most texts, and no secret.
_SHORTEST_SECRET = 4
_NO_ACCESS = "on-demand training is in beta"
_OTHER_WRITER = (
    "has an active read-write session",
    "has a live read-write ssh session",
    "an upload to volume",
    "is mounted by",
    "is in use by a run",
    "is attached read-write by a run",
)


@contextmanager
def explained(secrets: Iterable[str] = ()) -> Iterator[None]:
    """Raises refusals by what they mean, without the secrets that were sent.

    Args:
        secrets: values that must not be in an error.
    """
    with ExitStack() as stack:
        for value in secrets:
            if len(value) >= _SHORTEST_SECRET:
                stack.enter_context(kept_out_of_errors(SecretStr(value)))
        try:
            yield
        except APIError as error:
            if (meaning := _meaning(error)) is not None:
                raise rebuilt(meaning, error) from error.__cause__
            raise


def _meaning(error: APIError) -> type[APIError] | None:
    text = str(error).casefold()
    if error.status_code in (400, 403, 409) and _NO_ACCESS in text:
        return OnDemandAccessError
    if isinstance(error, ConflictError) and any(each in text for each in _OTHER_WRITER):
        return VolumeBusyError
    return None
