"""Names, sizes and prices of volumes. Follows the page "hosted-training/volumes"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

__all__ = [
    "DEFAULT_VOLUME_SIZE",
    "GIB",
    "VolumePrice",
    "check_volume_name",
    "check_volume_size",
    "volume_price",
]

GIB = 2**30
DEFAULT_VOLUME_SIZE = "5Ti"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_SIZE = re.compile(r"([1-9][0-9]*)([GT])i")
_GIB_OF = {"G": 1, "T": 1024}
_LARGEST = 20 * 1024
_GIB_HOUR = Decimal("0.000125")
_MONTH_HOURS = 30 * 24


@dataclass(frozen=True)
class VolumePrice:
    """What a volume costs from its creation to its deletion, used or not, in USD.

    Attributes:
        hourly: per hour.
        monthly: per month of 30 days.
    """

    hourly: Decimal
    monthly: Decimal


def check_volume_name(name: str) -> str:
    """Return a volume's name, or raise `ValueError`: 1 to 40 out of a-z, 0-9 and inner ``-``."""
    if not isinstance(name, str):
        raise TypeError(f"a volume's name is a text, not {name!r}")
    if not _NAME.fullmatch(name):
        raise ValueError("a volume's name is 1 to 40 characters out of a-z, 0-9 and inner -")
    return name


def check_volume_size(size: str) -> int:
    """Return a size such as ``1536Gi`` in GiB, or raise `ValueError`; the largest is ``20Ti``."""
    if not isinstance(size, str):
        raise TypeError(f"a volume's size is a text such as 500Gi, not {size!r}")
    found = _SIZE.fullmatch(size)
    if found is None:
        raise ValueError("a volume's size is a whole number of Gi or Ti, such as 1536Gi or 5Ti")
    # Its digits are counted first: int() is slow, and then refuses, when there are thousands.
    gib = int(found[1]) * _GIB_OF[found[2]] if len(found[1]) <= 5 else _LARGEST + 1
    if gib > _LARGEST:
        raise ValueError("the largest size of a volume is 20Ti")
    return gib


def volume_price(size: str) -> VolumePrice:
    """Give the price of a volume.

    Args:
        size: its size, such as ``1536Gi``; at most ``20Ti``.

    Raises:
        ValueError: the size is malformed or too large.
    """
    hourly = check_volume_size(size) * _GIB_HOUR
    return VolumePrice(hourly=hourly, monthly=hourly * _MONTH_HOURS)
