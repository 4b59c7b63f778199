"""What could not be sent, kept on disk."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from prime_traces.runs.parcels import Parcel

__all__ = ["UPLOADABLE", "UnsentRecords"]

_NAMES = {"trace": "traces", "episode": "episodes", "metrics": "metrics"}
# Files that the client can upload.
UPLOADABLE = frozenset({"traces.jsonl", "episodes.jsonl"})


class UnsentRecords:
    """The folder of one run; it is made when there is something to put into it.

    ``traces.jsonl`` and ``episodes.jsonl`` are as `TracesClient.upload_file` takes them,
    ``metrics.jsonl`` holds a step a line, ``rejected-….jsonl`` what the platform refused for
    what it is, and ``run.json`` the end of a run that could not be reported.

    Args:
        parent: the folder of all runs.
        run_id: the run; it names its folder.
    """

    def __init__(self, parent: Path, run_id: str) -> None:
        self.path = parent / quote(run_id, safe="").replace(".", "%2E")

    def write(self, parcel: Parcel, *, rejected: bool = False) -> Path:
        """Appends lines to the file of their kind; they are on disk when this returns.

        Raises:
            OSError: they can't be written.
        """
        name = ("rejected-" if rejected else "") + _NAMES[parcel.kind] + ".jsonl"
        return self._write(name, parcel.data, os.O_APPEND)

    def write_end(self, end: Mapping[str, Any]) -> Path:
        """Writes how the run ended.

        Raises:
            OSError: it can't be written.
        """
        text = json.dumps(end, indent=1, default=repr)
        return self._write("run.json", text.encode() + b"\n", os.O_TRUNC)

    def _write(self, name: str, data: bytes, flag: int) -> Path:
        self.path.mkdir(parents=True, exist_ok=True)
        path = self.path / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o666)
        with open(descriptor, "wb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            view = memoryview(data)
            try:
                while view:
                    view = view[file.write(view) :]
                os.fsync(descriptor)
            except OSError:
                # A torn line would spoil the one that is appended next.
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        return path
