"""Rules that hold for the repository as a whole."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SDK_PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
PACKAGES = [*SDK_PACKAGES, ROOT / "tools" / "prime-local"]

# Joined here, since no tracked file may name them.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
    )
]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+)/")
SECRET = re.compile(
    r"\bpit_\w{24,}|\bsk-[\w-]{24,}|\bgh[pousr]_\w{30,}|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{16,}\.eyJ[\w-]{16,}\.|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


def repository_files() -> list[Path]:
    """Every file that is, or with the next commit would be, tracked."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    paths = (ROOT / name for name in done.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in repository_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    return found


def imported_packages(path: Path) -> Iterator[str]:
    """Top-level names of what a module imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def forbidden_imports(package: Path, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(package.glob("src/**/*.py"))
        for name in sorted(forbidden.intersection(imported_packages(path)))
    ]


def import_name(package: Path) -> str:
    return package.name.replace("-", "_")


def test_the_patterns_find_what_they_are_for() -> None:
    assert MACHINE_PATH.search('open("' + "/ho" + 'me/someone/notes")')
    assert not MACHINE_PATH.search("https://x.example/home/page")
    assert SECRET.search("key = " + "pit" + "_" + "a1" * 16)
    assert REGISTRY_HOSTS[0].count(".") == 1


def test_no_file_names_the_host_of_a_package_registry() -> None:
    assert lines_matching(re.compile("|".join(map(re.escape, REGISTRY_HOSTS)))) == []


def test_no_file_holds_a_path_of_a_machine() -> None:
    assert lines_matching(MACHINE_PATH) == []


def test_no_file_holds_what_looks_like_a_secret() -> None:
    assert lines_matching(SECRET) == []


def test_the_lock_file_is_ignored() -> None:
    done = subprocess.run(["git", "check-ignore", "uv.lock"], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("package", PACKAGES, ids=import_name)
def test_a_package_is_complete(package: Path) -> None:
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (package / "README.md").read_text(encoding="utf-8").startswith(f"# {package.name}\n")
    project = (package / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert version
    assert f"\n## {version[1]}" in (package / "CHANGELOG.md").read_text(encoding="utf-8")
    assert (package / "src" / import_name(package) / "py.typed").is_file()


@pytest.mark.parametrize("package", SDK_PACKAGES, ids=import_name)
def test_dependencies_point_one_way(package: Path) -> None:
    ours = {import_name(path) for path in PACKAGES}
    assert forbidden_imports(package, ours - {import_name(package), "prime_core"}) == []


def test_the_local_platform_stands_alone() -> None:
    sdk = {import_name(path) for path in SDK_PACKAGES}
    assert forbidden_imports(ROOT / "tools" / "prime-local", sdk) == []


@pytest.mark.parametrize("package", SDK_PACKAGES, ids=import_name)
def test_only_the_core_imports_the_transport_libraries(package: Path) -> None:
    libraries = {"aiohttp", "tenacity", "anyio", "aiolimiter"}
    found = forbidden_imports(package, libraries)
    assert bool(found) == (package.name == "prime-core")


def test_no_source_file_is_too_long() -> None:
    def generated(path: Path) -> bool:
        return path.name.endswith("_pb2.py") or path.parent.name == "_sync"

    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in repository_files()
        if path.suffix == ".py" and not generated(path)
    }
    assert {name: length for name, length in lengths.items() if length > 450} == {}


def test_the_readme_has_two_commands_and_both_start_from_pip() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("\n## Two commands\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\w*\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    commands = blocks[0].splitlines()
    assert len(commands) == 2
    for command in commands:
        assert command.startswith("python -m pip install uv && python -m uv run ")
    assert (ROOT / commands[0].split()[-1]).is_file()
