"""Folders as archives, made and unpacked while they travel."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prime_core.archives import UnpackedFolder, folder_upload
from prime_core.errors import APIResponseError, UnsafeArchiveError
from prime_core.uploads import Upload


def nothing() -> None:
    """Nobody asks for progress."""


async def sent(upload: Upload) -> bytes:
    return b"".join([piece async for piece in upload.chunks(nothing, nothing)])


async def unpack(data: bytes, target: Path, step: int = 7000) -> None:
    async with UnpackedFolder(target) as folder:
        for start in range(0, len(data), step):
            await folder.feed(data[start : start + step])


def seen(root: Path) -> dict[str, tuple[int, object]]:
    """What is in a folder: modes, and content or target."""
    found: dict[str, tuple[int, object]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content: object = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (mode, content)
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "deep" / "er" / "é ü").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "script").write_bytes(b"#!/bin/sh\n")
    (root / "script").chmod(0o750)
    (root / "deep" / "large").write_bytes(os.urandom(3_000_001))
    (root / "deep" / "er" / "é ü" / "naïve\nname").write_bytes(b"x")
    (root / "nothing").touch()
    (root / ("long" * 50)).write_bytes(b"long name")
    (root / "link").symlink_to("deep/large")
    (root / "away").symlink_to("/etc/hostname")
    (root / "dangling").symlink_to("nowhere" * 30)
    (root / os.fsdecode(b"not \xff utf-8")).write_bytes(b"y")
    (root / "closed").mkdir(mode=0o500)
    return root


async def test_a_folder_comes_back_as_it_was(tree: Path, tmp_path: Path) -> None:
    upload = await folder_upload(tree)
    data = await sent(upload)
    assert upload.size == len(data)
    await unpack(data, tmp_path / "back")
    assert seen(tmp_path / "back") == seen(tree)
    large = Path("deep", "large")
    assert int((tmp_path / "back" / large).stat().st_mtime) == int((tree / large).stat().st_mtime)


async def test_what_tar_itself_makes_is_unpacked(tree: Path, tmp_path: Path) -> None:
    os.link(tree / "script", tree / "same")
    process = await asyncio.create_subprocess_exec(
        "tar", "-C", str(tree), "-cf", "-", ".", stdout=asyncio.subprocess.PIPE
    )
    data, _ = await process.communicate()
    await unpack(data, tmp_path / "back")
    assert seen(tmp_path / "back") == seen(tree)


async def test_tar_itself_unpacks_what_is_sent(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "back").mkdir()
    process = await asyncio.create_subprocess_exec(
        "tar", "-C", str(tmp_path / "back"), "-xpf", "-", stdin=asyncio.subprocess.PIPE
    )
    await process.communicate(await sent(await folder_upload(tree)))
    assert seen(tmp_path / "back") == seen(tree)


async def test_sockets_and_pipes_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "file").touch()
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        await unpack(await sent(await folder_upload(root)), tmp_path / "back")
    assert os.listdir(tmp_path / "back") == ["file"]


async def test_a_missing_folder_and_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await folder_upload(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        await folder_upload(tmp_path / "file")


def add(tree: Path) -> None:
    (tree / "zz new").write_bytes(b"x" * 50_000)


def cut(tree: Path) -> None:
    os.truncate(tree / "deep" / "large", 10)


def remove(tree: Path) -> None:
    (tree / "deep" / "large").unlink()


@pytest.mark.parametrize("change", [add, cut, remove])
async def test_a_folder_that_changes_meanwhile_is_an_error(
    tree: Path, change: Callable[[Path], None]
) -> None:
    upload = await folder_upload(tree)
    change(tree)
    with pytest.raises(OSError, match=r"changed|shorter|No such file"):
        await sent(upload)


async def test_an_upload_that_is_given_up_closes_what_it_reads(tree: Path) -> None:
    before = set(os.listdir("/dev/fd"))
    chunks = (await folder_upload(tree)).chunks(nothing, nothing)
    await chunks.__anext__()
    await chunks.aclose()
    assert set(os.listdir("/dev/fd")) == before


def archive(*members: tuple[str, bytes, str]) -> bytes:
    """An archive of members: name, type, and content or target of the link."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o6777
            data = content.encode() if kind == tarfile.REGTYPE else b""
            info.size = len(data)
            info.linkname = "" if data else content
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
HOSTILE = {
    "a name with ..": [("../evil", FILE, "x")],
    "a name with .. inside": [("a/../../evil", FILE, "x")],
    "an absolute name": [("/tmp/prime-evil", FILE, "x")],
    "a file through a link": [("link", LINK, ".."), ("link/evil", FILE, "x")],
    "a folder through a link": [("link", LINK, ".."), ("link/evil", FOLDER, "")],
    "a link through a link": [("link", LINK, ".."), ("link/evil", LINK, "x")],
    "a file below a file": [("a", FILE, "x"), ("a/evil", FILE, "x")],
    "a hard link to ..": [("evil", HARD, "../secret")],
    "a hard link to an absolute name": [("evil", HARD, "/etc/passwd")],
    "a hard link to a link": [("link", LINK, "/etc/passwd"), ("evil", HARD, "link")],
    "a hard link through a link": [("link", LINK, ".."), ("evil", HARD, "link/secret")],
    "a device": [("evil", tarfile.CHRTYPE, "")],
    "a block device": [("evil", tarfile.BLKTYPE, "")],
    "a pipe": [("evil", tarfile.FIFOTYPE, "")],
    "itself as a file": [(".", FILE, "x")],
    "itself as a link": [("./", LINK, "/etc")],
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_what_would_leave_the_folder_is_refused(tmp_path: Path, case: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    with pytest.raises(UnsafeArchiveError):
        await unpack(archive(("first", FILE, "x"), *HOSTILE[case]), tmp_path / "there")
    assert os.listdir(tmp_path) == ["secret"]
    assert "prime-evil" not in os.listdir("/tmp")


async def test_a_member_replaces_a_link_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    data = archive(("link", LINK, "../secret"), ("link", FILE, "own"))
    await unpack(data, tmp_path / "there")
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert not (tmp_path / "there" / "link").is_symlink()


async def test_special_mode_bits_are_dropped(tmp_path: Path) -> None:
    await unpack(archive(("file", FILE, "x"), ("folder", FOLDER, "")), tmp_path / "there")
    for name in ("file", "folder"):
        assert (tmp_path / "there" / name).stat().st_mode & 0o7777 == 0o777


async def test_a_broken_archive_leaves_nothing(tree: Path, tmp_path: Path) -> None:
    data = await sent(await folder_upload(tree))
    with pytest.raises(APIResponseError, match="not whole"):
        await unpack(data[: len(data) // 2], tmp_path / "back")
    with pytest.raises(APIResponseError, match="not whole"):
        await unpack(b"<html>" * 1000, tmp_path / "back")
    assert os.listdir(tmp_path) == ["tree"]


async def test_a_cancelled_unpacking_leaves_nothing(tree: Path, tmp_path: Path) -> None:
    data = await sent(await folder_upload(tree))
    begun = asyncio.Event()

    async def receive() -> None:
        async with UnpackedFolder(tmp_path / "back") as folder:
            await folder.feed(data[:1_000_000])
            begun.set()
            await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(receive())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert os.listdir(tmp_path) == ["tree"]


async def test_a_folder_that_holds_something_is_not_touched(tree: Path) -> None:
    before = seen(tree)
    with pytest.raises(FileExistsError, match="holds something"):
        await unpack(archive(("x", FILE, "x")), tree)
    assert seen(tree) == before


async def test_a_place_that_cannot_be_made_is_the_systems_own_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    data = archive(("x", FILE, "x" * 3_000_000))
    with pytest.raises(NotADirectoryError):
        await asyncio.wait_for(unpack(data, tmp_path / "file" / "below"), 10)


async def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    await unpack(archive(("x", FILE, "x")), tmp_path / "there")
    assert os.listdir(tmp_path / "there") == ["x"]


names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=20
)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    files=st.dictionaries(
        names.filter(lambda name: name not in (".", "..")), st.binary(max_size=2000), max_size=5
    ),
    step=st.integers(1, 3000),
)
def test_any_files_survive_any_cuts(
    files: dict[str, bytes], step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "tree").mkdir()
    for name, content in files.items():
        (root / "tree" / name).write_bytes(content)

    async def there_and_back() -> None:
        await unpack(await sent(await folder_upload(root / "tree")), root / "back", step)

    asyncio.run(there_and_back())
    assert seen(root / "back") == seen(root / "tree")
