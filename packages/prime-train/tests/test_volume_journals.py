"""What a transfer has noted outlives it, belongs to it alone, and is gone once it is complete."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prime_train.transfers.journals import open_journal

OTHER = """
import json
from prime_train.transfers.journals import open_journal

journal = open_journal("put", "a")
journal.add({"lease": "theirs"})
journal.finish()
print(json.dumps([journal.token, list(journal.lines)]))
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_transfer_that_broke_off_finds_what_it_noted(home: Path) -> None:
    journal = open_journal("put", "a")
    assert not journal.lines
    journal.add({"lease": "l"})
    journal.add({"key": "k", "part": 1})
    journal.close()
    again = open_journal("put", "a")
    assert again.lines == [{"lease": "l"}, {"key": "k", "part": 1}]
    assert again.token == journal.token
    again.close()
    other = open_journal("put", "b")
    assert not other.lines
    other.close()
    files = list((home / ".prime" / "transfers").iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_complete_transfer_leaves_nothing(home: Path) -> None:
    journal = open_journal("put", "a")
    journal.add({"lease": "l"})
    journal.finish()
    assert not list((home / ".prime" / "transfers").iterdir())


def test_a_line_that_a_kill_cut_short_spoils_no_other(home: Path) -> None:
    journal = open_journal("put", "a")
    journal.add({"n": 1})
    journal.close()
    (file,) = (home / ".prime" / "transfers").iterdir()
    with file.open("ab") as torn:
        torn.write(b'{"n": 2, "ha')
    again = open_journal("put", "a")
    assert again.lines == [{"n": 1}]
    again.add({"n": 3})
    again.close()
    assert open_journal("put", "a").lines == [{"n": 1}, {"n": 3}]


def test_the_same_transfer_in_another_process_neither_reads_nor_writes_it() -> None:
    journal = open_journal("put", "a")
    journal.add({"lease": "mine"})
    other = subprocess.run([sys.executable, "-c", OTHER], stdout=subprocess.PIPE, check=True)
    token, lines = json.loads(other.stdout)
    assert lines == []
    assert token != journal.token
    journal.close()
    assert open_journal("put", "a").lines == [{"lease": "mine"}]


def test_without_a_place_a_transfer_goes_on_without_a_journal(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("x")
    monkeypatch.setenv("HOME", f"{home}/file")
    journal = open_journal("put", "a")
    journal.add({"n": 1})
    journal.finish()
    assert os.listdir(home) == ["file"]
