"""Builds the wheel of every package and imports it in an environment of its own.

    python tools/check_wheels.py

Each environment holds one wheel and what it declares; our own packages among that are
installed by file, since the registry has packages of the same names that are not ours. The
versions are the pinned ones.

Run it with an interpreter that has uv (`python -m pip install uv`).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEP_TIMEOUT = 300.0  # seconds, for one build or installation
# Modules that need what is no dependency: the first is loaded by pytest alone, the other, which an
# extra is for, where it is used.
NEED_MORE = ("prime_local.pytest_plugin", "prime_train.transfers.s3_protocol")

# Runs in the clean environment: every module imports, every exported name resolves.
IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for name in package.__all__:
    getattr(package, name)
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith(".__main__") and module.name not in sys.argv[2:]:
        importlib.import_module(module.name)
print(f"{package.__name__}: {len(package.__all__)} names")
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        uv("build", "--quiet", "--all-packages", "--wheel", "--out-dir", str(work / "wheels"))
        wheels = {path.name.split("-")[0]: path for path in (work / "wheels").glob("*.whl")}
        projects = {path.parent.name.replace("-", "_") for path in ROOT.glob("*/*/pyproject.toml")}
        if set(wheels) != projects:
            raise SystemExit(f"Wheels of {sorted(wheels)} were built, not of {sorted(projects)}.")
        for package in sorted(wheels):
            check_content(package, wheels[package])
            check_imports(package, wheels, work / f"environment-{package}")
    return 0


def check_content(package: str, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    information = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
    required = {f"{package}/py.typed", f"{information}/licenses/LICENSE"}
    missing = sorted(required.difference(names))
    foreign = [name for name in names if name.split("/")[0] not in (package, information)]
    tests = [name for name in names if "tests" in name.split("/")]
    for fault, found in (("lacks", missing), ("holds the foreign", foreign), ("holds", tests)):
        if found:
            raise SystemExit(f"{wheel.name} {fault} {', '.join(found)}.")


def check_imports(package: str, wheels: dict[str, Path], environment: Path) -> None:
    python = str(environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    files = [str(wheels[name]) for name in sorted(own_requirements(package, wheels))]
    uv("venv", "--quiet", "--python", sys.executable, str(environment))
    uv("pip", "install", "--quiet", "--python", python, *files)
    # -I: neither the working folder nor PYTHONPATH can lend a module.
    run([python, "-I", "-c", IMPORT_EVERYTHING, package, *NEED_MORE], environment)


def own_requirements(package: str, wheels: dict[str, Path]) -> set[str]:
    """Return the package and those of ours that it needs, directly or not."""
    needed: set[str] = set()
    waiting = [package]
    while waiting:
        name = waiting.pop()
        needed.add(name)
        with zipfile.ZipFile(wheels[name]) as archive:
            entry = next(item for item in archive.namelist() if item.endswith("/METADATA"))
            metadata = archive.read(entry).decode()
        required = re.findall(r"^Requires-Dist: ([\w-]+)", metadata, re.MULTILINE)
        own = {requirement.replace("-", "_") for requirement in required}.intersection(wheels)
        waiting.extend(own - needed)
    return needed


def uv(*arguments: str) -> None:
    run([sys.executable, "-m", "uv", *arguments], ROOT)


def run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, timeout=STEP_TIMEOUT, check=False)
    if done.returncode != 0:
        shown = " ".join(word for word in command if "\n" not in word)
        raise SystemExit(f"Failed with status {done.returncode}: {shown}")


if __name__ == "__main__":
    sys.exit(main())
