"""Points in time: seconds since 1970 in the store, RFC 3339 texts outside."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TEXT = re.compile(r"(.{19})(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)


def format_time(seconds: float) -> str:
    """Return the text of a time, with microseconds."""
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str) -> float:
    """Read a text; digits beyond microseconds are dropped.

    Raises:
        ValueError: it is no RFC 3339 time.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError("not an RFC 3339 time")
    main, fraction, zone = found.groups()
    zone = "+00:00" if zone.upper() == "Z" else zone
    digits = (fraction or "")[:6].ljust(6, "0")
    try:
        # The difference is exact where `timestamp()` of dates far away need not be.
        return (datetime.fromisoformat(f"{main}.{digits}{zone}") - _EPOCH).total_seconds()
    except OverflowError:
        raise ValueError("not an RFC 3339 time") from None
