"""Which files the gateway reaches in each isolation mode, and whose they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local.sandboxes.isolation.base import WantedMode

if TYPE_CHECKING:
    from conftest import Files, PlatformOfMode

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]
MIB = 1024 * 1024


async def test_what_is_uploaded_can_be_downloaded_and_read(files_of_mode: Files) -> None:
    files = files_of_mode
    path = f"{await files.place()}/new/folder/é 1.txt"
    answer = await files.upload(path, "grüße\n".encode())
    assert answer.status == 200, answer.body
    assert (answer.body["success"], answer.body["path"], answer.body["size"]) == (True, path, 8)
    assert (await files.download(path)).body == "grüße\n".encode()
    assert (await files.read(path)).body == {"content": "grüße\n", "size": 8}
    assert await files.run("cat 'new/folder/é 1.txt'") == "grüße\n"


async def test_megabytes_go_both_ways(files_of_mode: Files) -> None:
    files = files_of_mode
    data = os.urandom(20 * MIB + 1)
    assert (await files.upload("big", data)).body["size"] == len(data)
    answer = await files.download("big")
    assert answer.body == data
    assert answer.headers["Content-Length"] == str(len(data))
    assert answer.headers["Content-Type"] == "application/octet-stream"


async def test_a_file_belongs_to_the_sandboxs_account(files_of_mode: Files) -> None:
    files = files_of_mode
    await files.upload("new")
    await files.run("echo old > old; chmod 750 old")
    await files.upload("old")
    listed = await files.run("stat -c '%a %u %n' new old; id -u; ls -A")
    user = listed.split("\n")[2]
    assert listed == f"644 {user} new\n750 {user} old\n{user}\nnew\nold\n"


async def test_a_link_is_followed_where_it_leads_in_the_sandbox(files_of_mode: Files) -> None:
    files = files_of_mode
    await files.run("mkdir there; ln -s there/file link")
    await files.upload("link", b"through")
    assert await files.run("cat there/file; readlink link") == "throughthere/file\n"
    assert (await files.download("link")).body == b"through"


@pytest.mark.parametrize("mode", ["bwrap", "full"])
async def test_no_path_leads_out_of_an_isolated_sandbox(
    platform_of_mode: PlatformOfMode, helpers: Any, tmp_path: Path, mode: WantedMode
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    async with helpers.client_of(platform_of_mode(mode)) as client:
        files = client.files(await client.running())
        up = "../" * 20
        await files.run(f"ln -s {secret} link; ln -s {up}{secret} up; ln -s /proc/1/root root")
        for path in (
            str(secret),
            f"/tmp/{up}{secret}",
            "link",
            "up",
            f"root/{secret}",
            f"/proc/self/root/{secret}",
            f"/proc/1/root{secret}",
        ):
            assert (await files.download(path)).status in (403, 404), path
            assert (await files.read(path)).status in (403, 404), path
        for path in ("link", "up", str(tmp_path / "new")):
            await files.upload(path, b"written")
        assert secret.read_bytes() == b"secret"
        assert os.listdir(tmp_path) == ["secret"]
        # What was written is in the sandbox's own root, if it has a writable one.
        if mode == "full":
            assert (await files.download(str(tmp_path / "new"))).body == b"written"


@pytest.mark.parametrize("path", ["{secret}", "link", "folder/new", "../../../../../../{secret}"])
async def test_without_isolation_paths_keep_to_the_sandboxs_folders(
    files: Files, tmp_path: Path, path: str
) -> None:
    elsewhere = Path("/var/tmp") / tmp_path.name
    elsewhere.mkdir(exist_ok=True)
    secret = elsewhere / "secret"
    try:
        secret.write_bytes(b"secret")
        await files.run(f"ln -s {secret} link; ln -s {elsewhere} folder")
        where = path.format(secret=secret)
        answer = await files.upload(where, b"written")
        assert (answer.status, answer.body["error"]) == (403, "gateway_error")
        assert "out of the sandbox's folders" in answer.body["message"]
        if "new" not in path:
            assert (await files.download(where)).status == 403
            assert (await files.read(where)).status == 403
        assert secret.read_bytes() == b"secret"
        assert os.listdir(elsewhere) == ["secret"]
    finally:
        secret.unlink()
        elsewhere.rmdir()


async def test_without_isolation_what_commands_leave_in_tmp_is_readable(
    files: Files, tmp_path: Path
) -> None:
    path = Path("/tmp") / f"prime-{tmp_path.name}-{os.getpid()}"
    try:
        await files.run(f"echo log > {path}")
        assert (await files.read(str(path))).body["content"] == "log\n"
        assert (await files.upload(str(path))).status == 403
        assert path.read_text() == "log\n"
    finally:
        path.unlink()


# What reading and writing such a path is answered with; None where it can be written.
IMPOSSIBLE: dict[str, tuple[int, int | None]] = {
    "nope": (404, None),
    "no/folder": (404, None),
    "file/below": (404, 400),
    "folder": (400, 400),
    "folder/": (400, 400),
    "pipe": (400, 400),
    "loop": (400, 400),
    "x" * 300: (400, 400),
    "": (400, 400),
    "a\0b": (400, 400),
}


async def test_an_impossible_path_is_refused(files_of_mode: Files) -> None:
    files = files_of_mode
    await files.run("touch file; mkdir folder; mkfifo pipe; ln -s loop loop")
    for path, (reading, writing) in IMPOSSIBLE.items():
        for answer in (await files.download(path), await files.read(path)):
            assert answer.status == reading, (path, answer.body)
            assert answer.body["error"] == "gateway_error"
            assert answer.body["code"] == reading
        if writing is not None:
            assert (await files.upload(path)).status == writing, path


@pytest.mark.parametrize("mode", ["bwrap", "full"])
async def test_devices_are_no_files(
    platform_of_mode: PlatformOfMode, helpers: Any, mode: WantedMode
) -> None:
    async with helpers.client_of(platform_of_mode(mode)) as client:
        files = client.files(await client.running())
        for path in ("/dev/zero", "/dev/null", "/proc/self/fd/0", "/proc/self/fd/1"):
            assert (await files.download(path)).status in (400, 404), path
            assert (await files.upload(path)).status in (400, 403, 404), path
        assert stat.S_ISCHR(int(await files.run("printf %d 0x$(stat -c %f /dev/null)")))
