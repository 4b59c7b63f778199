"""Copying folders that sandboxes may be changing meanwhile."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_local.sandboxes.copying import Copier, CopyError

MOST = 10**9

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def copier() -> Iterator[Copier]:
    copier = Copier()
    yield copier
    copier.close()


async def test_everything_about_the_files_is_kept(copier: Copier, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "folder").mkdir(parents=True)
    (source / "file").write_bytes(b"hello")
    os.link(source / "file", source / "folder" / "same")
    (source / "link").symlink_to("/nowhere")
    os.mkfifo(source / "pipe")
    (source / "file").chmod(0o4751)
    os.utime(source / "file", ns=(1, 2))
    (source / "folder").chmod(0o500)
    os.utime(source / "folder", ns=(3, 4))
    source.chmod(0o711)

    assert await copier.copy(source, target, MOST) == len(b"hello")
    assert (target / "file").read_bytes() == b"hello"
    file, folder = (target / "file").stat(), (target / "folder").stat()
    assert (stat.S_IMODE(file.st_mode), file.st_mtime_ns) == (0o4751, 2)
    assert (stat.S_IMODE(folder.st_mode), folder.st_mtime_ns) == (0o500, 4)
    assert stat.S_IMODE(target.stat().st_mode) == 0o711
    assert (target / "folder" / "same").samefile(target / "file")
    assert os.readlink(target / "link") == "/nowhere"
    assert (target / "pipe").is_fifo()


async def test_holes_take_no_room_and_do_not_count(copier: Copier, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    os.truncate(_file(source / "file", b"x", at=1 << 29), 1 << 30)
    assert await copier.copy(source, tmp_path / "target", 1 << 20) <= 1 << 16
    copy = (tmp_path / "target" / "file").stat()
    assert copy.st_size == 1 << 30
    assert copy.st_blocks * 512 <= 1 << 16


async def test_extended_attributes_are_kept(copier: Copier, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    try:
        os.setxattr(source, "user.note", b"hello")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    await copier.copy(source, tmp_path / "target", MOST)
    assert os.getxattr(tmp_path / "target", "user.note") == b"hello"


async def test_no_link_is_followed(copier: Copier, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    source = tmp_path / "source"
    source.mkdir()
    (source / "link").symlink_to(tmp_path / "secret")
    assert await copier.copy(source, tmp_path / "target", MOST) == 0
    assert (tmp_path / "target" / "link").is_symlink()
    (tmp_path / "other").symlink_to(tmp_path / "secret")
    assert await copier.copy(tmp_path / "other", tmp_path / "empty", MOST) == 0
    assert list((tmp_path / "empty").iterdir()) == []


async def test_a_folder_exchanged_for_a_link_leads_nowhere(copier: Copier, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    source, spare = tmp_path / "source", tmp_path / "spare"
    (source / "victim").mkdir(parents=True)
    spare.symlink_to(tmp_path / "secret")
    over = threading.Event()

    def exchange() -> None:
        while not over.is_set():
            (source / "victim").rename(tmp_path / "aside")
            spare.rename(source / "victim")
            (source / "victim").rename(spare)
            (tmp_path / "aside").rename(source / "victim")

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for number in range(300):
            await copier.copy(source, tmp_path / f"target-{number}", MOST)
            assert _names_below(tmp_path / f"target-{number}") <= {"victim"}
    finally:
        over.set()
        thread.join()


async def test_what_vanishes_and_what_cannot_be_kept_is_left_out(
    copier: Copier, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(source / "socket"))
        await copier.copy(source, tmp_path / "target", MOST)
    assert list((tmp_path / "target").iterdir()) == []
    over = threading.Event()

    def churn() -> None:
        while not over.is_set():
            for number in range(20):
                (source / f"file-{number}").write_text("x")
            for number in range(20):
                (source / f"file-{number}").unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for number in range(50):
            await copier.copy(source, tmp_path / f"target-{number}", MOST)
    finally:
        over.set()
        thread.join()


async def test_nothing_is_copied_from_nothing(copier: Copier, tmp_path: Path) -> None:
    for source in (None, tmp_path / "nowhere"):
        assert await copier.copy(source, tmp_path / "target", MOST) == 0
        assert list((tmp_path / "target").iterdir()) == []


async def test_a_folder_that_is_too_large_is_refused(copier: Copier, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_bytes(b"x" * 600)
    assert await copier.copy(source, tmp_path / "fits", 1200) == 1200
    with pytest.raises(CopyError, match="more than 1199 bytes"):
        await copier.copy(source, tmp_path / "target", 1199)


async def test_a_folder_that_is_too_deep_is_refused(copier: Copier, tmp_path: Path) -> None:
    deepest = tmp_path / "source" / "/".join("d" * 129)
    deepest.mkdir(parents=True)
    with pytest.raises(CopyError, match="deep"):
        await copier.copy(tmp_path / "source", tmp_path / "target", MOST)
    deepest.rmdir()
    await copier.copy(tmp_path / "source", tmp_path / "other", MOST)


async def test_a_folder_with_too_many_files_is_refused(
    copier: Copier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_local.sandboxes.copying._MOST_ENTRIES", 3)
    for name in "abcd":
        (tmp_path / "source" / name).mkdir(parents=True)
    with pytest.raises(CopyError, match="more than 3 files"):
        await copier.copy(tmp_path / "source", tmp_path / "target", MOST)


async def test_copying_stops_when_it_is_told_to(copier: Copier, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_bytes(b"x")
    stop = threading.Event()
    stop.set()
    with pytest.raises(CopyError, match="stopped"):
        await copier.copy(source, tmp_path / "target", MOST, stop)
    copier.close()
    with pytest.raises(CopyError):
        await copier.copy(source, tmp_path / "other", MOST)


async def test_a_cancelled_copy_is_over_when_the_cancellation_arrives(
    copier: Copier, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    _file(source / "file", b"x" * (1 << 28))
    copying = asyncio.ensure_future(copier.copy(source, target, MOST))
    deadline = time.monotonic() + 10
    while not (target / "file").exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    taken = (target / "file").stat().st_blocks
    await asyncio.sleep(0.05)
    assert (target / "file").stat().st_blocks == taken


def _file(path: Path, data: bytes, *, at: int = 0) -> Path:
    with open(path, "wb") as file:
        file.seek(at)
        file.write(data)
    return path


def _names_below(folder: Path) -> set[str]:
    return {name for _, folders, files in os.walk(folder) for name in (*folders, *files)}
