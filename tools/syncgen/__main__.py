"""``python tools/syncgen [--check] [--output DIR]``: writes the sync clients, or compares them."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:
    # Run as a folder, Python puts the folder itself on the path, not the one that holds it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from syncgen.generator import Generated, generate
from syncgen.rules import RULES, Rules

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, rules: Rules = RULES) -> int:
    """Returns the exit code: 1 on drift or on anything that could not be generated."""
    parser = argparse.ArgumentParser(prog="python tools/syncgen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    parser.add_argument("--output", type=Path, default=root, help="the workspace to write into")
    options = parser.parse_args(arguments)
    result = generate(root, rules)
    for problem in result.problems:
        print(problem, file=sys.stderr)
    if options.check:
        return 1 if _show_drift(result, root) or result.problems else 0
    if result.problems:
        return 1
    _write(result, root, options.output)
    return 0


def _write(result: Generated, root: Path, output: Path) -> None:
    for path, text in result.files.items():
        target = output / path.relative_to(root)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(f"wrote {target}")
    for path in result.stale:
        if output == root:
            path.unlink()
            print(f"removed {path}")


def _show_drift(result: Generated, root: Path) -> bool:
    drift = False
    for path, text in result.files.items():
        shown = str(path.relative_to(root))
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        diff = difflib.unified_diff(
            present.splitlines(keepends=True), text.splitlines(keepends=True), shown, shown
        )
        for line in diff:
            drift = True
            print(line, end="")
    for path in result.stale:
        drift = True
        print(f"{path.relative_to(root)}: no async module accounts for it")
    return drift


if __name__ == "__main__":
    sys.exit(main())
