"""Traces and episodes as lines of JSON that name their run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from prime_traces.batches import MAX_LINE_BYTES
from prime_traces.errors import TraceTooLargeError
from prime_traces.records import encode_record
from prime_traces.runs.parcels import Parcel, Refusal

__all__ = ["Packer", "as_record", "check_records", "has_members"]

Kind = Literal["trace", "episode"]


def as_record(given: object) -> Mapping[str, Any]:
    """The mapping that a record is, or that its ``to_record()`` gives.

    Raises:
        TypeError: it is neither.
    """
    record = given
    if not isinstance(given, Mapping) and hasattr(given, "to_record"):
        record = given.to_record()
    if not isinstance(record, Mapping):
        raise TypeError(
            f"a record is a mapping or has to_record() that gives one, unlike {type(given)!r}"
        )
    return record


def check_records(records: object) -> None:
    """Raises a TypeError for one record in place of several, or for none at all."""
    single = isinstance(records, (Mapping, str, bytes, bytearray)) or hasattr(records, "to_record")
    if single or not hasattr(records, "__iter__"):
        raise TypeError(
            f"records come in a list or another iterable, not as a {type(records).__name__}: "
            "put a single one into a list"
        )


class Packer:
    """Writes a run's id and type into copies of its records, and encodes them.

    Args:
        run_id: the run.
        run_type: ``eval`` or ``train``.
        target: bytes of a parcel, where its lines allow it.
    """

    def __init__(self, run_id: str, run_type: str, target: int) -> None:
        self._stamp = {"id": run_id, "type": run_type}
        self._target = target

    def pack(
        self, records: Iterable[object], only: Kind | None = None
    ) -> Iterator[Parcel | Refusal]:
        """Parcels of records in their order, and refusals; each as soon as it is complete.

        Args:
            records: the records.
            only: what they all are; by default each is known by what it holds.
        """
        kind: Kind = "trace"
        lines: list[bytes] = []
        size = 0
        for number, given in enumerate(records, 1):
            record: Mapping[str, Any] = {}
            try:
                record = as_record(given)
                line = self._encode(record, only or _kind(record), number)
            # Whatever a producer's to_record() raises must not end the program that logs.
            except Exception as error:
                yield Refusal(error, Parcel(only or _kind(record), (_nearest(record or given),)))
                continue
            its_kind = only or _kind(record)
            if lines and (its_kind != kind or size + len(line) > self._target):
                yield Parcel(kind, tuple(lines))
                lines, size = [], 0
            kind = its_kind
            lines.append(line)
            size += len(line)
        if lines:
            yield Parcel(kind, tuple(lines))

    def _encode(self, record: Mapping[str, Any], kind: Kind, number: int) -> bytes:
        stamped = self._stamped(record)
        members = stamped.pop("traces", None)
        if isinstance(members, (list, tuple)):
            members = [
                self._stamped(member) if isinstance(member, Mapping) else member
                for member in members
            ]
        if "traces" in record:
            # Last, where `has_members` finds it without parsing the line.
            stamped["traces"] = members
        line = encode_record(stamped, line_format=kind, line_number=number)
        if len(line) - 1 > MAX_LINE_BYTES:
            raise TraceTooLargeError(number, len(line) - 1, MAX_LINE_BYTES)
        return line

    def _stamped(self, record: Mapping[str, Any]) -> dict[str, Any]:
        run = record.get("run")
        return {**record, "run": {**(run if isinstance(run, Mapping) else {}), **self._stamp}}


def has_members(line: bytes) -> bool:
    """Whether the episode in a line holds a trace."""
    return not line.endswith(b'"traces":[]}\n')


def _kind(record: Mapping[str, Any]) -> Kind:
    return "episode" if "traces" in record else "trace"


def _nearest(given: object) -> bytes:
    """What Python's JSON makes of a record that has no strict form."""
    try:
        text = json.dumps(given, default=repr, skipkeys=True)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(repr(type(given)))
    return text.encode() + b"\n"
