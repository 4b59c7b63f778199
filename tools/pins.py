"""Pins everything that the workspace installs, in the root pyproject.toml.

    python tools/pins.py            resolve, and write the pins
    python tools/pins.py --check    resolve, and fail when the result differs from the pins

The resolution starts without a lock file, under the pins there are: a new dependency gets
its newest version, the others stay. To move a pin, delete its line and run this again.

Run it with an interpreter that has uv (`python -m pip install uv`).
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "# pins: written by tools/pins.py\n"
END = "# end of pins\n"
RESOLUTION_TIMEOUT = 300.0  # seconds, for one run of uv
EXPORT = (
    *("export", "--frozen", "--no-hashes", "--no-emit-workspace", "--no-annotate", "--no-header"),
    *("--all-packages", "--all-groups", "--all-extras"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Pin everything that the workspace installs.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check: bool = parser.parse_args().check
    path = ROOT / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    before, present, after = split(text)
    with tempfile.TemporaryDirectory() as folder:
        copy_projects(Path(folder))
        resolved = block(resolve(Path(folder)), resolve_build(Path(folder), present))
    if resolved == present:
        return 0
    if not check:
        path.write_text(before + resolved + after, encoding="utf-8")
        return 0
    lines = difflib.unified_diff(
        present.splitlines(), resolved.splitlines(), "pyproject.toml", "resolved now", lineterm=""
    )
    print("\n".join(lines))
    print("The pins are not what a resolution from scratch gives: run `python tools/pins.py`.")
    return 1


def split(text: str) -> tuple[str, str, str]:
    """Return what stands before, in and after the block of pins."""
    before, begin, rest = text.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"pyproject.toml lacks the lines {BEGIN!r} and {END!r} in [tool.uv].")
    return before, begin + inside + end, after


def block(constraints: list[str], build_constraints: list[str]) -> str:
    def array(key: str, pins: list[str]) -> str:
        return f"{key} = [\n" + "".join(f'    "{pin}",\n' for pin in pins) + "]\n"

    return (
        BEGIN
        + array("constraint-dependencies", constraints)
        + array("build-constraint-dependencies", build_constraints)
        + END
    )


def copy_projects(target: Path) -> None:
    """Copy the project files alone: without uv.lock, nothing is remembered."""
    for path in (*ROOT.glob("pyproject.toml"), *ROOT.glob("*/*/pyproject.toml")):
        copy = target / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def resolve(project: Path) -> list[str]:
    run_uv(project, "lock", "--quiet")
    return run_uv(project, *EXPORT)


def resolve_build(project: Path, present: str) -> list[str]:
    """Resolve what the packages are built with, under the build pins there are."""
    required: set[str] = set()
    for path in project.glob("*/*/pyproject.toml"):
        found = re.search(r"^requires = \[(.*)\]$", path.read_text(encoding="utf-8"), re.MULTILINE)
        required.update(re.findall(r'"([^"]+)"', found[1] if found else ""))
    (project / "build.in").write_text("\n".join(sorted(required)), encoding="utf-8")
    pins = re.findall(r'^    "(.+)",$', present.partition("build-constraint")[2], re.MULTILINE)
    (project / "build-pins.txt").write_text("\n".join(pins), encoding="utf-8")
    return run_uv(
        project,
        *("pip", "compile", "--quiet", "build.in", "--constraints", "build-pins.txt"),
        *("--universal", "--python-version", "3.10", "--no-annotate", "--no-header"),
    )


def run_uv(project: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        cwd=project,
        stdout=subprocess.PIPE,
        text=True,
        timeout=RESOLUTION_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"uv {arguments[0]} failed; if a pin is in the way, delete its line.")
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
