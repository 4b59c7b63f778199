"""Logs of hosted runs: any line of them is made when it is asked for, none before."""

from __future__ import annotations

import asyncio
import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_local.errors import PlatformError
from prime_local.training.outputs.components import Component, primary
from prime_local.training.outputs.phrases import Line, body, closing, opening
from prime_local.training.runs.record import Run, Stretch

# How far back a read goes where it does not say.
DEFAULT_SINCE = 900
# After so many lines a search lets others have their turn.
_TURN = 1000
# Lest a line that comes just now is left out: times are sums of floats.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Wanted:
    """Which lines a read asks for, by the parameters of the contract."""

    tail_lines: int
    search: str | None = None
    regex: bool = False
    level: str | None = None
    since_seconds: int | None = None

    @property
    def filtered(self) -> bool:
        """Whether it asks for other lines than the newest."""
        return bool(self.search or self.level or self.since_seconds)

    def matcher(self) -> Callable[[Line], bool]:
        """Return what tells whether a line is wanted.

        Raises:
            PlatformError: 400 for a pattern that is none.
        """
        level = self.level
        if not self.search:
            return lambda line: level in (None, line.level)
        try:
            pattern = re.compile(self.search if self.regex else re.escape(self.search))
        except re.error as error:
            raise PlatformError(400, f"search is no pattern: {error}") from error
        found = pattern.search
        return lambda line: level in (None, line.level) and found(line.text) is not None


class ComponentLog:
    """What a component of a run has logged by `now`."""

    def __init__(self, run: Run, component: Component, now: float) -> None:
        stretches = run.stretches(now)
        last = len(stretches) - 1 if run.status.final else None
        self._parts = [
            _Part(run, component, stretch, now, ends=number == last)
            for number, stretch in enumerate(stretches)
        ]
        self._starts = [0, *itertools.accumulate(map(len, self._parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    def line(self, index: int) -> Line:
        part, place = self._find(index)
        return part.line(place)

    def first_since(self, at: float) -> int:
        """Return the first line of that time or later."""
        return bisect_left(range(len(self)), at - _ROUNDING, key=self._at)

    def _at(self, index: int) -> float:
        part, place = self._find(index)
        return part.at(place)

    def _find(self, index: int) -> tuple[_Part, int]:
        number = bisect_left(self._starts, index + 1) - 1
        return self._parts[number], index - self._starts[number]


class _Part:
    """The lines of one stretch of training."""

    def __init__(
        self, run: Run, component: Component, stretch: Stretch, now: float, *, ends: bool
    ) -> None:
        self._run = run
        self._component = component
        self._stretch = stretch
        self._until = now if stretch.ended_at is None else stretch.ended_at
        self._opening = opening(run, component, stretch.began_at, stretch.first)
        self._closing = closing(run, self._until) if ends else []
        passed = (self._until - stretch.began_at) / run.step_seconds
        self._body = math.floor(passed * run.log_lines + _ROUNDING)
        if run.max_steps is not None:
            self._body = min(self._body, (run.max_steps - stretch.first) * run.log_lines)

    def __len__(self) -> int:
        return len(self._opening) + self._body + len(self._closing)

    def at(self, place: int) -> float:
        number = place - len(self._opening)
        if number < 0:
            return self._stretch.began_at
        if number >= self._body:
            return self._until
        return self._stretch.began_at + (number + 1) * self._run.step_seconds / self._run.log_lines

    def line(self, place: int) -> Line:
        number = place - len(self._opening)
        if number < 0:
            return self._opening[place]
        if number >= self._body:
            return self._closing[number - self._body]
        step, slot = divmod(number, self._run.log_lines)
        step += self._stretch.first + 1
        return body(self._run, self._component, self.at(place), step, slot)


def readable(run: Run, component: Component) -> None:
    """Check that a component has a log now.

    Raises:
        PlatformError: 404 when it does not yet, or no more.
    """
    if run.started_at is None and run.status.final:
        raise PlatformError(404, "Logs not available: the run ended before it trained")
    if run.started_at is None:
        raise PlatformError(404, f"Logs are not available yet: the run is {run.status.value}")
    if run.status.final and component.name != primary(run):
        raise PlatformError(404, "Logs not available: the pods of the run are gone")


async def read(log: ComponentLog, wanted: Wanted, *, since: float | None) -> str:
    """Return the newest lines that are wanted, joined.

    Args:
        log: the log.
        wanted: which.
        since: the time that it reads from; None for all of it.

    Raises:
        PlatformError: 400 for a pattern that is none.
    """
    first = 0 if since is None else log.first_since(since)
    if wanted.search or wanted.level:
        lines = await _search(log, first, wanted)
    else:
        indexes = range(max(first, len(log) - wanted.tail_lines), len(log))
        lines = [log.line(index).text for index in indexes]
    return "\n".join(lines)


async def _search(log: ComponentLog, first: int, wanted: Wanted) -> Sequence[str]:
    matches = wanted.matcher()
    found: list[str] = []
    for index in range(len(log) - 1, first - 1, -1):
        line = log.line(index)
        if matches(line):
            found.append(line.text)
            if len(found) == wanted.tail_lines:
                break
        if index % _TURN == 0:
            await asyncio.sleep(0)
    return found[::-1]
