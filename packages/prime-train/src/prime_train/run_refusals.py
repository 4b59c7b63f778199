"""What the platform's refusals of runs mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from pydantic import SecretStr

from prime_core.errors import APIError, rebuilt
from prime_core.secret_values import kept_out_of_errors
from prime_train.errors import OnDemandAccessError
from prime_train.volume_refusals import typed_refusals

__all__ = ["explained"]

# A flag such as "1" is in most texts, and no secret.
_SHORTEST_SECRET = 4
_NO_ACCESS = "on-demand training is in beta"


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
            with typed_refusals():
                yield
        except APIError as error:
            if error.status_code in (400, 403, 409) and _NO_ACCESS in str(error).casefold():
                raise rebuilt(OnDemandAccessError, error) from error.__cause__
            raise
