"""What a transfer moves where, against a model of the documented rules."""

from __future__ import annotations

import os
import posixpath
import socket
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train import VolumePathError
from prime_train.transfers.paths import (
    ancestors,
    check_writable,
    is_ignored,
    source_path,
    volume_path,
)
from prime_train.transfers.planning import (
    LocalFile,
    Source,
    check_clashes,
    plan_download,
    plan_upload,
    scan,
)
from prime_train.transfers.store import StoredObject

WHEN = datetime(2026, 1, 1, tzinfo=timezone.utc)
ALPHABET = "abcXYZ019._-@%+=,:"
names = st.text(ALPHABET, min_size=1, max_size=8).filter(lambda name: name not in (".", ".."))
segments = st.one_of(names, st.sampled_from(["", ".", ".."]))
paths = st.lists(segments, max_size=6).map("/".join)
trees = st.sets(st.lists(names, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8)


def without_clashes(paths: set[str]) -> list[str]:
    """The paths none of which is a folder of another."""
    folders = {folder for path in paths for folder in ancestors(path)}
    return sorted(paths - folders)


def folder(name: str, files: Sequence[str], *, contents: bool) -> Source:
    found = [(path, LocalFile(f"/{name}/{path}", 1, 0)) for path in files]
    return Source(f"/{name}", name, True, contents, found, (), 0)


def stored(*keys: str) -> list[StoredObject]:
    return [StoredObject(key, 1, "etag", WHEN) for key in sorted(keys)]


@given(paths)
def test_a_path_is_what_a_file_system_makes_of_it(path: str) -> None:
    depth = 0
    leaves = False
    for segment in path.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(segment, 1)
        leaves = leaves or depth < 0
    if leaves:
        with pytest.raises(VolumePathError, match="out of the volume"):
            volume_path(path)
        return
    found = volume_path(path)
    assert "/" + "/".join(found.parts) == posixpath.normpath("//" + path).replace("//", "/")
    assert found.inside == (not found.parts or path.endswith(("/", "/.", "/..")))


@given(st.text(min_size=1, max_size=10))
def test_a_name_is_refused_exactly_when_it_has_another_character(name: str) -> None:
    allowed = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@%+=,:/")
    if set(name) <= allowed:
        if name.split("/")[0] != "..":
            volume_path("deep/er/and/deeper/still/" + name)
    else:
        with pytest.raises(VolumePathError, match="is no name on a volume"):
            volume_path(name)


@pytest.mark.parametrize("key", ["runs", "runs/", "runs/x", "/runs/x", "a/../runs/x", "./runs"])
def test_runs_are_not_written_to(key: str) -> None:
    with pytest.raises(VolumePathError, match="runs/ holds run outputs"):
        plan_upload(folder("d", ["f"], contents=True), volume_path(key), target_is_folder=False)
    with pytest.raises(VolumePathError, match="runs/ holds run outputs"):
        plan_upload(folder("runs", ["f"], contents=False), volume_path("/"), target_is_folder=False)
    check_writable("datasets/runs/x")


def test_the_longest_name_and_key_are_the_documented_ones() -> None:
    volume_path("a" * 255)
    with pytest.raises(VolumePathError, match="longer than 255"):
        volume_path("a" * 256)
    check_writable("a" * 1000, "p" * 24)
    with pytest.raises(VolumePathError, match="longer than 1024"):
        check_writable("a" * 1001, "p" * 24)


@given(names, trees, paths)
def test_a_folder_goes_into_the_target_and_comes_back_as_it_was(
    name: str, tree: set[str], path: str
) -> None:
    files = without_clashes(tree)
    try:
        target = volume_path(path)
        whole = plan_upload(folder(name, files, contents=False), target, target_is_folder=False)
        inner = plan_upload(folder(name, files, contents=True), target, target_is_folder=False)
    except VolumePathError:
        first = [*posixpath.normpath("/" + path).split("/"), name][1]
        assert path.count("..") or "runs" in (first, *files) or name == "runs"
        return
    at = "/".join((*target.parts, name))
    assert [upload.key for upload in whole.uploads] == [f"{at}/{file}" for file in files]
    base = "".join(f"{part}/" for part in target.parts)
    assert [upload.key for upload in inner.uploads] == [base + file for file in files]
    # The folder itself, fetched into `here`, is `here/<name>`; its contents are in `here`.
    back = plan_download(volume_path(at), stored(*(upload.key for upload in whole.uploads)))
    assert sorted("/".join(each.parts) for each in back.downloads) == sorted(
        f"{name}/{file}" for file in files
    )
    back = plan_download(volume_path(at + "/"), stored(*(upload.key for upload in whole.uploads)))
    assert sorted("/".join(each.parts) for each in back.downloads) == sorted(files)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("my-data", "datasets/", "datasets/my-data/f"),
        ("my-data", "datasets", "datasets/my-data/f"),
        ("my-data/", "datasets/my-data", "datasets/my-data/f"),
        ("my-data/.", "datasets/my-data/", "datasets/my-data/f"),
        ("my-data", "/", "my-data/f"),
        ("my-data/", "", "f"),
        ("my-data/f", "models/", "models/f"),
        ("my-data/f", "models/g", "models/g"),
        ("my-data/f", "", "f"),
        ("my-data/f", "/", "f"),
        ("my-data/f", "models/.", "models/f"),
    ],
)
def test_what_goes_where(tmp_path: Path, source: str, target: str, expected: str) -> None:
    (tmp_path / "my-data").mkdir()
    (tmp_path / "my-data" / "f").write_text("x")
    found = scan(source_path(f"{tmp_path}/{source}"))
    plan = plan_upload(found, volume_path(target), target_is_folder=False)
    assert [upload.key for upload in plan.uploads] == [expected]


def test_a_file_goes_into_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    found = scan(source_path(tmp_path / "f"))
    plan = plan_upload(found, volume_path("models"), target_is_folder=True)
    assert [upload.key for upload in plan.uploads] == ["models/f"]
    assert plan.route == "models/"


def test_a_put_into_the_root_names_what_it_writes_there() -> None:
    files = ["b/1", "a/1", "a/2", "c"]
    plan = plan_upload(folder("d", files, contents=True), volume_path("/"), target_is_folder=False)
    assert (plan.route, plan.entries) == ("", ["a", "b", "c"])
    plan = plan_upload(folder("d", files, contents=False), volume_path("/"), target_is_folder=False)
    assert (plan.route, plan.entries) == ("", ["d"])
    plan = plan_upload(folder("d", files, contents=True), volume_path("x"), target_is_folder=False)
    assert (plan.route, plan.entries) == ("x/", None)


def test_at_most_256_names_go_into_the_root() -> None:
    def files(count: int) -> Source:
        return folder("d", [f"f{n}" for n in range(count)], contents=True)

    assert plan_upload(files(256), volume_path("/"), target_is_folder=False).entries
    with pytest.raises(VolumePathError, match="257 names"):
        plan_upload(files(257), volume_path("/"), target_is_folder=False)
    plan_upload(files(257), volume_path("datasets/"), target_is_folder=False)


def test_a_scan_leaves_links_out_and_counts_them(tmp_path: Path) -> None:
    source = tmp_path / "data"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "only-links").mkdir()
    (source / "file").write_bytes(b"12345")
    os.symlink("file", source / "link")
    os.symlink("/", source / "only-links" / "root")
    found = scan(source_path(source))
    assert [path for path, _ in found.files] == ["file"]
    assert found.empty == ["only-links", "sub/empty"]
    assert found.links == 2
    plan = plan_upload(found, volume_path("x"), target_is_folder=False)
    assert plan.size == 5
    assert [upload.key for upload in plan.uploads if upload.file is None] == [
        "x/data/only-links/",
        "x/data/sub/empty/",
    ]


@pytest.mark.parametrize("ending", ["", "/", "/."])
def test_a_source_that_is_a_link_is_refused(tmp_path: Path, ending: str) -> None:
    (tmp_path / "data").mkdir()
    os.symlink("data", tmp_path / "link")
    with pytest.raises(VolumePathError, match="symbolic link"):
        scan(source_path(f"{tmp_path}/link{ending}"))


def test_what_can_not_be_put_is_named_before_anything_moves(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        scan(source_path(tmp_path / "nothing"))
    with pytest.raises(VolumePathError, match="source is empty"):
        source_path("")
    with pytest.raises(TypeError, match="path as a string"):
        source_path(b"bytes")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("x")
    with pytest.raises(VolumePathError, match="no folder"):
        scan(source_path(f"{tmp_path}/file/."))
    (tmp_path / "with blank").write_text("x")
    with pytest.raises(VolumePathError, match="'with blank' is no name on a volume"):
        scan(source_path(f"{tmp_path}/"))
    (tmp_path / "with blank").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(VolumePathError, match="neither a file nor a folder"):
            scan(source_path(tmp_path))


@given(trees, trees)
def test_a_clash_is_found_exactly_when_a_file_and_a_folder_meet(
    before: set[str], after: set[str]
) -> None:
    there, wanted = without_clashes(before), without_clashes(after)
    folders = {folder for path in there for folder in ancestors(path)}
    clash = any(
        path in folders or any(folder in there for folder in ancestors(path)) for path in wanted
    )
    if clash:
        with pytest.raises(VolumePathError):
            check_clashes(wanted, there)
    else:
        check_clashes(wanted, there)


def test_markers_of_empty_folders_clash_with_files() -> None:
    check_clashes(["a/"], ["a/"])
    check_clashes(["a/b"], ["a/"])
    with pytest.raises(VolumePathError, match="'a' is a file"):
        check_clashes(["a/"], ["a"])
    with pytest.raises(VolumePathError, match="'a' is a folder"):
        check_clashes(["a"], ["a/"])


@pytest.mark.parametrize(
    ("key", "ignored"),
    [
        ("a/b", False),
        ("a//b", True),
        ("/a", True),
        ("a/./b", True),
        ("../a", True),
        ("a\\b", True),
        ("runs/.sessions/x", True),
        ("runs/x/.sessions/y", False),
        ("runs/x", False),
        ("a/b/", False),
        ("a//", True),
        (". ./b", False),
    ],
)
def test_keys_that_no_file_here_can_have_are_ignored(key: str, ignored: bool) -> None:
    assert is_ignored(key) is ignored
    plan = plan_download(volume_path("/"), stored(key, "kept"))
    assert plan.ignored == int(ignored)


@given(st.text(max_size=12))
def test_no_key_leads_out_of_the_destination(key: str) -> None:
    for download in plan_download(volume_path("/"), stored(key)).downloads:
        place = os.path.normpath(os.path.join("/here", *download.parts))
        assert place.startswith("/here/")
        assert all(part not in ("", ".", "..") for part in download.parts)


def test_a_lone_file_takes_its_name_and_a_trailing_slash_asks_for_a_folder() -> None:
    plan = plan_download(volume_path("a/f"), stored("a/f"))
    assert plan.is_file
    assert [each.parts for each in plan.downloads] == [("f",)]
    assert not plan_download(volume_path("a/f/"), stored("a/f")).downloads
    plan = plan_download(volume_path("a/d"), stored("a/d/"))
    assert [(each.parts, each.is_folder) for each in plan.downloads] == [(("d",), True)]


def test_what_is_a_file_and_a_folder_at_once_can_not_be_fetched() -> None:
    with pytest.raises(VolumePathError, match="'a' is a file and a folder"):
        plan_download(volume_path("/"), stored("a", "a/b"))
    with pytest.raises(VolumePathError, match="'a' is a file and a folder"):
        plan_download(volume_path("a"), stored("a", "a/b"))
    plan = plan_download(volume_path("a/"), stored("a", "a/b"))
    assert [each.parts for each in plan.downloads] == [("b",)]
