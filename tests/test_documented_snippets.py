"""Every Python snippet of the documentation that concerns our packages runs unchanged.

The documentation is read where it lies next to the repository, or where PRIME_SHARED says. Each
snippet runs in a process of its own, between the lines that `support/documented_snippets.py` has
for it, and leaves no sandbox alive.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from code_blocks import python_blocks
from documented_snippets import NOT_YET, SNIPPETS, Snippet

from prime_local import PlatformProcess

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PRIME_SHARED") or ROOT.parent / "shared")
DOCUMENTATION = SHARED / "docs" / "platform-docs.txt"
RUNNER = Path(__file__).with_name("programs") / "run_snippet.py"
SNIPPET_SECONDS = 30
# The parts of the documentation whose snippets are all meant, and the packages whose snippets
# are, wherever they stand.
PARTS = ("sandboxes/", "traces/", "inference/", "api-reference/inference-")
PACKAGES = ("prime_sandboxes", "prime_traces")

pytestmark = [
    pytest.mark.skipif(not DOCUMENTATION.is_file(), reason="the documentation is not here"),
    pytest.mark.timeout(3 * SNIPPET_SECONDS),
]


def documented() -> dict[str, str]:
    """The snippets that concern our packages, by page and number on it."""
    found: dict[str, str] = {}
    numbers: Counter[str] = Counter()
    for page, code in python_blocks(DOCUMENTATION.read_text("utf-8")):
        numbers[page] += 1
        if page.startswith(PARTS) or any(package in code for package in PACKAGES):
            found[f"{page} {numbers[page]}"] = code
    return found


DOCUMENTED = documented() if DOCUMENTATION.is_file() else {}
OURS = {key: code for key, code in DOCUMENTED.items() if key.split()[0] not in NOT_YET}

PlatformFor = Callable[[Snippet], PlatformProcess]


@pytest.fixture(scope="module")
def platform_for() -> Iterator[PlatformFor]:
    """Platforms that all snippets share, one a kind, reset for each."""
    running: dict[bool, PlatformProcess] = {}
    with contextlib.ExitStack() as stack:

        def find(snippet: Snippet) -> PlatformProcess:
            isolated = snippet.own_files
            if isolated not in running:
                mode = PlatformProcess(["--no-limits"], isolation="auto" if isolated else "process")
                running[isolated] = stack.enter_context(mode)
            platform = running[isolated]
            if isolated and platform.isolation != "full":
                reason = f"isolation is {platform.isolation}: / cannot be written to"
                if os.environ.get("PRIME_REQUIRE_ISOLATION"):
                    pytest.fail(reason)
                pytest.skip(reason)
            platform.reset()
            return platform

        yield find


def test_blocks_are_found_wherever_they_stand() -> None:
    text = "Source: https://docs.example/a/b\n```python Python theme={null}\nif x:\n    y\n```\n"
    text += (
        "```bash\n# Source: no\n```\n> ```py\n> x\n>\n>   y\n> ```\n  ````python\n  ```\n  ````\n"
    )
    found = ["if x:\n    y\n", "x\n\n  y\n", "```\n"]
    assert list(python_blocks(text)) == [("a/b", code) for code in found]


def test_the_text_is_read_whole() -> None:
    text = DOCUMENTATION.read_text("utf-8")
    fences = re.findall(r"^[ \t>]*```+[ \t]*py", text, re.MULTILINE)
    assert len(list(python_blocks(text))) == len(fences)


def test_every_snippet_has_an_entry_and_every_entry_a_snippet() -> None:
    assert OURS.keys() == SNIPPETS.keys()


def test_no_page_is_left_out_whose_package_exists() -> None:
    left_out = {key.split()[0] for key in DOCUMENTED} - {key.split()[0] for key in OURS}
    assert left_out == set(NOT_YET)
    assert not any(importlib.util.find_spec(package) for package in NOT_YET.values())


@pytest.mark.parametrize("key", OURS)
def test_a_documented_snippet_runs_unchanged(
    key: str, platform_for: PlatformFor, tmp_path: Path
) -> None:
    snippet, code = SNIPPETS[key], OURS[key]
    digest = hashlib.sha256(code.encode()).hexdigest()[:12]
    assert digest == snippet.digest, "the snippet's text has changed: see that its entry still fits"
    platform = platform_for(snippet)
    platform.name_sandboxes(*snippet.example_ids)
    pieces = [("before", snippet.before), (key, code), ("after", snippet.after)]
    done = subprocess.run(
        [sys.executable, str(RUNNER)],
        input=json.dumps(pieces),
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **platform.env},
        capture_output=True,
        text=True,
        timeout=SNIPPET_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(snippet.prints, done.stdout), done.stdout
    assert platform.ledger()["sandboxes"]["live"] == 0
    platform.check_contract()
