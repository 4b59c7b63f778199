"""A fleet's progress bar, when rich is installed and somebody is there to see it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from prime_core.progress import progress_console

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Progress"]


class Progress:
    """A fleet's: counts items; draws a bar on a terminal or in a notebook if it is asked to.

    Args:
        wanted: whether a bar was asked for.
        items: the items, whose number is shown where it is known.
    """

    def __init__(self, wanted: bool, items: object) -> None:
        self._wanted = wanted
        length = operator.length_hint(items, -1)
        self._total = length if length >= 0 else None
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._failed = 0

    def started(self) -> None:
        """An item's work starts."""
        if not self._wanted or self._bar is not None:
            return
        console = progress_console()
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
            TextColumn("sandboxes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._bar.add_task("sandboxes", total=self._total, failed=0)
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
