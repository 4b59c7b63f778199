"""Progress bars, when rich is installed and somebody is there to see them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prime_core import uploads

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["progress_console", "transfer_progress"]


def progress_console() -> Console | None:
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
    console = progress_console() if wanted else None
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
