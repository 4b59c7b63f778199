"""What background jobs leave in /tmp, where sandboxes share it with this machine."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

_PLACE = Path("/tmp")
_FOLDER = re.compile(r"/tmp/(job_[0-9A-Fa-f]{8})\.launch\b")


class JobFiles:
    """Remembers which job files each sandbox's commands named, to delete them with it."""

    def __init__(self) -> None:
        self._stems: dict[str, set[str]] = {}

    def note(self, sandbox_id: str, argv: Iterable[str]) -> None:
        """Look for a job's folder in a command: clients make one to start a job."""
        stems = {stem for word in argv for stem in _FOLDER.findall(word)}
        if stems:
            self._stems.setdefault(sandbox_id, set()).update(stems)

    def remove(self, sandbox_id: str) -> None:
        """Delete the files of a sandbox's jobs, which have ended; blocks."""
        for stem in self._stems.pop(sandbox_id, ()):
            for path in _PLACE.glob(f"{stem}.*"):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        path.unlink()
