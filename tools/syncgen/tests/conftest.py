from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from syncgen.testing import Workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    made = Workspace(tmp_path)
    monkeypatch.syspath_prepend(str(made.package.parent))
    yield made
    for name in [name for name in sys.modules if name.partition(".")[0] == "prime_made"]:
        del sys.modules[name]
