"""Files without a pattern, and what a folder holds."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["MIB", "sample", "tree", "write"]

MIB = 1024 * 1024


def write(path: Path, size: int, *, seed: int = 0) -> str:
    """Writes a file without a pattern, and gives its MD5."""
    path.parent.mkdir(parents=True, exist_ok=True)
    md5 = hashlib.md5(usedforsecurity=False)
    with path.open("wb") as file:
        for number in range(0, size, MIB):
            block = hashlib.shake_128(f"{seed} {number}".encode()).digest(min(MIB, size - number))
            file.write(block)
            md5.update(block)
    return md5.hexdigest()


def tree(root: Path) -> dict[str, tuple[bytes, int] | None]:
    """Every file below, with its content and time, and every empty folder."""
    found: dict[str, tuple[bytes, int] | None] = {}
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        for name in files:
            path = here / name
            found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mtime_ns)
        if not folders and not files:
            found[str(here.relative_to(root))] = None
    return found


def sample(root: Path) -> Path:
    """A folder with a file of each kind, whose times have more and less digits."""
    data = root / "my-data"
    write(data / "a", 100_000)
    write(data / "sub" / "b", 5)
    write(data / "sub" / "nothing", 0)
    (data / "empty").mkdir()
    os.utime(data / "a", ns=(0, 1_700_000_000_123_456_789))
    os.utime(data / "sub" / "b", ns=(0, 1_600_000_000_500_000_000))
    return data
