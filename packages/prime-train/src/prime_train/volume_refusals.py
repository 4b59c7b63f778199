"""What the platform's refusals about volumes mean, by their texts; their statuses vary."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import datetime, timezone

from prime_core.errors import APIError, rebuilt
from prime_train.errors import VolumeBusyError, VolumeExistsError, VolumeSessionUnavailableError

__all__ = ["typed_refusals"]

_STATUSES = (400, 403, 409, 422)
_BUSY = re.compile(
    r"has an active read-write session|has a live read-write SSH session"
    r"|an upload to volume .* is in progress|is mounted by \d+ live run"
    r"|has \d+ active volume SSH session|is in use by a run|is attached read-write by a run"
)
_UNAVAILABLE = re.compile(
    r"no SSH public key is configured|SSH sessions need a cluster allocation"
    r"|has ReadWriteMany storage, which an SSH session needs|SSH session limit \(\d+\) reached"
)
_TAKEN = re.compile(r"already exists|already taken")
_UNTIL = re.compile(r"in progress until (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[0-9.]*Z")


@contextlib.contextmanager
def typed_refusals() -> Iterator[None]:
    """Raises refusals as the classes that say what to do about them."""
    try:
        yield
    except APIError as error:
        typed = _typed(error)
        if typed is None:
            raise
        raise typed from error.__cause__  # the same failure, by another name


def _typed(error: APIError) -> APIError | None:
    text = str(error.args[0]) if error.args else ""
    if error.status_code not in _STATUSES:
        return None
    if _UNAVAILABLE.search(text):
        return rebuilt(VolumeSessionUnavailableError, error)
    if _BUSY.search(text):
        busy = rebuilt(VolumeBusyError, error)
        if found := _UNTIL.search(text):
            busy.until = datetime.fromisoformat(found[1]).replace(tzinfo=timezone.utc)
        return busy
    if error.status_code == 409 and _TAKEN.search(text):
        return rebuilt(VolumeExistsError, error)
    return None
