"""Progress bars, when rich is installed and somebody is there to see them."""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prime_core import uploads

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["ItemProgress", "transfer_progress"]


def _console() -> Console | None:
    """Where a bar can be drawn and seen."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(file=sys.stderr)
    return console if console.is_terminal or console.is_jupyter else None


@contextlib.contextmanager
def transfer_progress(
    wanted: bool | uploads.Progress, name: str
) -> Iterator[uploads.Progress | None]:
    """Gives what is told of a transfer's progress: the caller's function, or a bar.

    Args:
        wanted: the caller's function, or whether a bar was asked for.
        name: what the bar is called.
    """
    if callable(wanted):
        yield wanted
        return
    console = _console() if wanted else None
    if console is None:
        yield None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class ItemProgress:
    """Counts items; draws a bar on a terminal or in a notebook if it is asked to.

    Args:
        wanted: whether a bar was asked for.
        name: what the bar is called.
        items: the items, whose number is shown where it is known.
    """

    def __init__(self, wanted: bool, name: str, items: object) -> None:
        self._wanted = wanted
        self._name = name
        length = operator.length_hint(items, -1)
        self._total = length if length >= 0 else None
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._failed = 0

    def started(self) -> None:
        """An item's work starts."""
        if not self._wanted or self._bar is not None:
            return
        console = _console()
        if console is None:
            self._wanted = False
            return
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._bar.add_task(self._name, total=self._total, failed=0)
        self._bar.start()

    def advance(self, ok: bool) -> None:
        """An outcome is handed out."""
        self._failed += not ok
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, failed=self._failed)

    def stop(self) -> None:
        """Leaves the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._wanted = False
