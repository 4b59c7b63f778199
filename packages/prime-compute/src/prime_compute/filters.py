"""What to look for among the offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import TypedDict

from prime_core.encoding import Query

__all__ = ["DiskFilters", "GpuFilters", "gpu_query", "place_query"]


class DiskFilters(TypedDict, total=False):
    """Where a disk shall be.

    Attributes:
        regions: in any of these.
        data_center_id: in this data centre.
        cloud_id: under this name of the provider.
    """

    regions: Sequence[str] | None
    data_center_id: str | None
    cloud_id: str | None


class GpuFilters(DiskFilters, total=False):
    """What GPUs to look for, and where.

    Attributes:
        gpu_type: GPU model, such as ``GpuType.H100_80GB``.
        gpu_count: exactly so many of them.
        socket: form factor.
        security: class of hosting.
        disks: ids of disks of yours, to any of which a pod could attach.
        regions: in any of these.
        data_center_id: in this data centre.
        cloud_id: under this name of the provider.
    """

    gpu_type: str | None
    gpu_count: int | None
    socket: str | None
    security: str | None
    disks: Sequence[str] | None


_LISTS = frozenset({"regions", "disks"})


def gpu_query(filters: GpuFilters) -> Query:
    return _query(filters, GpuFilters)


def place_query(filters: DiskFilters) -> Query:
    return _query(filters, DiskFilters)


def _query(filters: Mapping[str, object], kind: type) -> dict[str, str | int | list[str]]:
    known = kind.__annotations__
    return {
        name: _checked(name, value, known) for name, value in filters.items() if value is not None
    }


def _checked(name: str, value: object, known: Mapping[str, object]) -> str | int | list[str]:
    if name not in known:
        raise TypeError(f"{name} is no filter; there are {', '.join(known)}")
    if name in _LISTS:
        if isinstance(value, str) or not isinstance(value, Sequence) or not value:
            raise ValueError(f"{name} is a list of at least one, not {value!r}")
        return [_text(f"one of {name}", item) for item in value]
    if name != "gpu_count":
        return _text(name, value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"gpu_count is a whole number of at least 1, not {value!r}")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is a text that is not empty, not {value!r}")
    return str(value)
