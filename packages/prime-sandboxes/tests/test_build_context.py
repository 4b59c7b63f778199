"""Packing a folder as a build context."""

from __future__ import annotations

import asyncio
import os
import socket
import tarfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

import pytest

from prime_sandboxes.build_context import DOCKERFILE_NAME, packed_context

MakeTree = Callable[..., Path]


@pytest.fixture
def tree(tmp_path: Path) -> MakeTree:
    """Makes a folder of files, with a Dockerfile if none is given."""

    def make(name: str = "context", **files: str) -> Path:
        folder = tmp_path / name
        for path, content in {"Dockerfile": "FROM debian\n", **files}.items():
            target = folder / path.replace("__", "/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        return folder

    return make


async def pack(context: Path, dockerfile: Path | None = None) -> bytes:
    async with packed_context(context, dockerfile or context / "Dockerfile") as (archive, size):
        data = archive.read()
        assert len(data) == size
        return data


async def members(context: Path, dockerfile: Path | None = None) -> dict[str, tarfile.TarInfo]:
    async with packed_context(context, dockerfile or context / "Dockerfile") as (archive, _):
        with tarfile.open(fileobj=archive, mode="r:gz") as tar:
            return {member.name: member for member in tar}


async def content(context: Path, name: str, dockerfile: Path | None = None) -> bytes:
    async with packed_context(context, dockerfile or context / "Dockerfile") as (archive, _):
        with tarfile.open(fileobj=archive, mode="r:gz") as tar:
            return cast(IO[bytes], tar.extractfile(name)).read()


async def test_a_folder_is_packed_with_its_dockerfile_under_a_name_of_its_own(
    tree: MakeTree,
) -> None:
    context = tree(a="1", sub__b="2")
    (context / "empty").mkdir()
    found = await members(context)
    assert list(found) == [DOCKERFILE_NAME, "Dockerfile", "a", "empty", "sub", "sub/b"]
    assert found["empty"].isdir()
    assert await content(context, DOCKERFILE_NAME) == b"FROM debian\n"
    assert await content(context, "sub/b") == b"2"


async def test_the_same_tree_makes_the_same_archive(tree: MakeTree) -> None:
    one, other = tree("one", a="1", b__c="2"), tree("other", b__c="2", a="1")
    os.utime(other / "a", (1, 1))
    assert await pack(one) == await pack(other)
    (other / "a").chmod(0o755)
    assert await pack(one) != await pack(other)


async def test_members_say_nothing_of_this_machine(tree: MakeTree) -> None:
    context = tree(run="x")
    (context / "run").chmod(0o750)
    member = (await members(context))["run"]
    assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
    assert member.mode == 0o750
    # ZIP files, wheels among them, know no time before 1980.
    assert member.mtime > 315_532_800


async def test_what_is_ignored_is_left_out_but_for_the_dockerfile(tree: MakeTree) -> None:
    context = tree(**{".dockerignore": "*\n!src/**/*.py\n"}, src__a__b="no", secret="no")
    (context / "src" / "a" / "c.py").write_text("yes")
    assert list(await members(context)) == [DOCKERFILE_NAME, "src/a/c.py"]


async def test_the_ignore_file_of_the_dockerfile_goes_first(tree: MakeTree, tmp_path: Path) -> None:
    context = tree(**{".dockerignore": "a"}, a="1", b="2")
    other = tmp_path / "other.Dockerfile"
    other.write_text("FROM python")
    assert "a" not in await members(context, other)
    (tmp_path / "other.Dockerfile.dockerignore").write_text("\ufeffb\nDockerfile\n")
    found = await members(context, other)
    assert list(found) == [DOCKERFILE_NAME, ".dockerignore", "a"]
    assert await content(context, DOCKERFILE_NAME, other) == b"FROM python"


async def test_links_are_packed_as_links(tree: MakeTree, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("no")
    context = tree(a="1")
    (context / "file").symlink_to("a")
    (context / "folder").symlink_to(tmp_path / "outside")
    (context / "nowhere").symlink_to("gone")
    found = await members(context)
    assert "folder/secret" not in found
    targets = {name: found[name].linkname for name in ("file", "folder", "nowhere")}
    assert targets == {"file": "a", "folder": str(tmp_path / "outside"), "nowhere": "gone"}


async def test_a_file_with_two_names_is_packed_whole_twice(tree: MakeTree) -> None:
    context = tree(a="1")
    os.link(context / "a", context / "b")
    found = await members(context)
    assert found["a"].isfile()
    assert found["b"].isfile()


async def test_sockets_pipes_and_a_packed_dockerfile_are_left_out(
    tree: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tree()
    (context / DOCKERFILE_NAME).write_text("FROM elsewhere")
    os.mkfifo(context / "pipe")
    monkeypatch.chdir(context)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        assert list(await members(context)) == [DOCKERFILE_NAME, "Dockerfile"]
    assert await content(context, DOCKERFILE_NAME) == b"FROM debian\n"


async def test_names_of_any_letters_come_through(tree: MakeTree) -> None:
    names = ["é ü", "x" * 200, "%2f:é", "new\nline"]
    context = tree()
    for name in names:
        (context / name).write_text(name)
    assert set(names) <= set(await members(context))


async def test_what_is_missing_is_named(tree: MakeTree, tmp_path: Path) -> None:
    context = tree()
    with pytest.raises(FileNotFoundError, match="dockerfile is a file"):
        await pack(context, context / "Other")
    with pytest.raises(FileNotFoundError, match="context is a folder"):
        await pack(tmp_path / "gone", context / "Dockerfile")
    (context / ".dockerignore").write_text("ok\n[a")
    with pytest.raises(ValueError, match=r"dockerignore: '\[a' is no pattern"):
        await pack(context)


async def test_a_large_file_is_never_held_whole(tree: MakeTree) -> None:
    context = tree()
    with (context / "big").open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    tracemalloc.start()
    try:
        async with packed_context(context, context / "Dockerfile") as (_, size):
            assert size < 1024 * 1024
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()


async def test_a_cancelled_packing_ends_its_thread(tree: MakeTree) -> None:
    context = tree()
    with (context / "big").open("wb") as file:
        file.truncate(4 * 1024**3)
    before = set(threading.enumerate())
    packing = asyncio.create_task(pack(context))
    await asyncio.sleep(0.2)
    packing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(packing, 5)
    # The pool's thread stays, but free: it takes the next work at once.
    for thread in set(threading.enumerate()) - before:
        assert "asyncio" in thread.name
    await asyncio.wait_for(asyncio.to_thread(lambda: None), 2)
