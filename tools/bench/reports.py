"""The rows of the bench, as a table and as JSON."""

from __future__ import annotations

import dataclasses
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Row", "as_json", "as_table", "ratio"]


@dataclass(frozen=True)
class Row:
    """One measure.

    Attributes:
        name: what was measured.
        value: the result, in `unit`.
        unit: such as ``x raw aiohttp``, for a ratio.
        target: the most that we want it to be, or None.
        details: further figures, by name.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        return None if self.target is None else self.value <= self.target


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The ratio of two sides' medians."""
    return statistics.median(ours) / statistics.median(theirs)


def as_json(rows: Sequence[Row], *, short: bool) -> dict[str, object]:
    return {
        "short": short,
        "python": platform.python_version(),
        "system": platform.system(),
        "rows": [{**dataclasses.asdict(row), "met": row.met} for row in rows],
    }


def as_table(rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [
        "| measure | result | target | met | details |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row.name,
            f"{figure(row.value)} {row.unit}",
            "" if row.target is None else f"<= {figure(row.target)}",
            {None: "", True: "yes", False: "NO"}[row.met],
            ", ".join(f"{name} {figure(value)}" for name, value in row.details.items()),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def figure(value: float) -> str:
    """A number with three digits that count, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
