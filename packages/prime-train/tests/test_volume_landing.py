"""Where fetched files land: nothing is written through a link, over a folder, or half."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest

from prime_train import VolumePathError
from prime_train.transfers.landing import Landing, Place, make_folder, places
from prime_train.transfers.paths import volume_path
from prime_train.transfers.planning import plan_download
from prime_train.transfers.store import StoredObject


def placed(path: str, destination: str | os.PathLike[str], *keys: str) -> Sequence[Place]:
    when = datetime(2026, 1, 1, tzinfo=timezone.utc)
    stored = [StoredObject(key, 1, "etag", when) for key in keys]
    return places(plan_download(volume_path(path), stored), destination)[1]


def land(place: Place, content: bytes) -> None:
    landing = Landing(place, "token")
    landing.open(len(content), 0)
    landing.write(0, bytearray(content))
    landing.keep(10**18)


@pytest.mark.parametrize(
    ("path", "keys", "destination", "expected"),
    [
        ("d/f", ["d/f"], "new", "new"),
        ("d/f", ["d/f"], "new/", "new/f"),
        ("d/f", ["d/f"], "there", "there/f"),
        ("d/f", ["d/f"], ".", "f"),
        ("d", ["d/f"], "new", "new/d/f"),
        ("d/", ["d/f"], "new", "new/f"),
        ("d/.", ["d/f"], "there", "there/f"),
        ("/", ["d/f"], ".", "d/f"),
    ],
)
def test_what_goes_where(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    keys: list[str],
    destination: str,
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert [place.path for place in placed(path, destination, *keys)] == [f"{tmp_path}/{expected}"]


@pytest.mark.parametrize("where", ["here", "here/d", "here/d/f"])
def test_a_link_in_the_way_is_refused_before_anything_moves(tmp_path: Path, where: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / where
    link.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(outside, link)
    with pytest.raises(VolumePathError, match="symbolic link"):
        placed("/", tmp_path / "here", "d/f")


def test_a_link_on_the_way_to_the_destination_is_the_callers_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "link")
    assert placed("f", f"{tmp_path}/link/f", "f")[0].path == f"{tmp_path}/real/f"


def test_a_link_that_appears_meanwhile_is_not_written_through(tmp_path: Path) -> None:
    place = placed("/", tmp_path / "here", "d/f")[0]
    (tmp_path / "outside").mkdir()
    (tmp_path / "here").mkdir()
    os.symlink(tmp_path / "outside", tmp_path / "here" / "d")
    with pytest.raises(VolumePathError, match="no folder any more"):
        land(place, b"x")
    with pytest.raises(VolumePathError, match="no folder any more"):
        make_folder(place.root, ("d", "e"))
    assert not list((tmp_path / "outside").iterdir())


def test_a_link_in_a_files_place_is_not_followed(tmp_path: Path) -> None:
    place = placed("f", tmp_path / "f", "f")[0]
    (tmp_path / "secret").write_bytes(b"old")
    os.symlink("secret", tmp_path / "f")
    with pytest.raises(VolumePathError, match="no file any more"):
        land(place, b"new")
    assert (tmp_path / "secret").read_bytes() == b"old"


def test_files_and_folders_do_not_take_each_others_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder" / "f").mkdir(parents=True)
    with pytest.raises(VolumePathError, match="file' is a file, and no folder"):
        placed("/", tmp_path / "file", "f")
    with pytest.raises(VolumePathError, match="file' is a file, and no folder"):
        placed("/", tmp_path, "file/f")
    with pytest.raises(VolumePathError, match="file' is a file, and no folder"):
        placed("/", tmp_path, "file/")
    with pytest.raises(VolumePathError, match="f' is no file"):
        placed("/", tmp_path, "folder/f")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(VolumePathError, match="pipe' is no file"):
        placed("pipe", tmp_path / "pipe", "pipe")
    with pytest.raises(VolumePathError, match="destination is empty"):
        placed("f", "", "f")


def test_a_file_takes_its_place_whole_with_its_time_and_the_old_ones_mode(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o600)
    place = placed("f", tmp_path / "f", "f")[0]
    landing = Landing(place, "token")
    assert not landing.open(6, 0)
    landing.write(3, bytearray(b"def"))
    assert (tmp_path / "f").read_bytes() == b"old"
    landing.write(0, bytearray(b"abc"))
    assert landing.keep(123456789012345678) == (6, 123456789012345678)
    landing.discard()
    found = (tmp_path / "f").stat()
    assert (tmp_path / "f").read_bytes() == b"abcdef"
    assert (found.st_mtime_ns, stat.S_IMODE(found.st_mode)) == (123456789012345678, 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_only_the_very_file_that_was_left_is_gone_on_with(tmp_path: Path) -> None:
    place = placed("f", tmp_path / "f", "f")[0]
    left = Landing(place, "token")
    left.open(3, 0)
    left.write(0, bytearray(b"abc"))
    left.close()
    left.write(0, bytearray(b"xyz"))  # of a thread that comes late
    again = Landing(place, "token")
    assert again.open(3, left.inode)
    assert Path(again.path).read_bytes() == b"abc"
    again.close()
    other = Landing(place, "token")
    assert not other.open(3, left.inode + 1)
    assert Path(other.path).read_bytes() == b"\0\0\0"
    other.discard()
    assert not list(tmp_path.iterdir())


def test_a_thread_that_opens_after_a_cancellation_leaves_nothing(tmp_path: Path) -> None:
    landing = Landing(placed("f", tmp_path / "f", "f")[0], "token")
    landing.discard()
    with pytest.raises(ValueError, match="cancelled meanwhile"):
        landing.open(3, 0)
    assert not list(tmp_path.iterdir())
