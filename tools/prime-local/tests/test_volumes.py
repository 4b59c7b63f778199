"""Volumes: mounts in real sandboxes, and the routes' refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform

if TYPE_CHECKING:
    from conftest import OpenPlatform, PlatformOfMode, RawClient

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]
DATA: Json = {"name": "data", "mount_path": "/data"}


@pytest.fixture(params=["full", "bwrap"])
async def isolated(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode, helpers: Any
) -> AsyncIterator[RawClient]:
    """A client of a platform in each isolation mode that can mount volumes."""
    platform = platform_of_mode(request.param)
    async with helpers.client_of(platform) as client:
        yield client
    platform.reset()


async def create(client: RawClient, name: str, **fields: object) -> Json:
    answer = await client.call("POST", "/api/v1/sandbox/volumes", {"name": name, **fields})
    assert answer.status == 201, answer.body
    volume: Json = answer.body
    return volume


async def publish(client: RawClient, sandbox: Json, name: str = "data", **body: object) -> Json:
    path = f"/api/v1/sandbox/{sandbox['id']}/volumes/{name}/publish"
    answer = await client.call("POST", path, body)
    assert answer.status == 200, answer.body
    checkpoint: Json = answer.body
    return checkpoint


async def head(client: RawClient, name: str = "data") -> str | None:
    answer = await client.call("GET", f"/api/v1/sandbox/volumes/{name}")
    assert answer.status == 200, answer.body
    found: str | None = answer.body["head_checkpoint_id"]
    return found


async def test_a_volume_is_a_disk_of_its_own(isolated: RawClient) -> None:
    await create(isolated, "data")
    await create(isolated, "more")
    deep = {"name": "more", "mount_path": "/mnt/a b/deep"}
    writer = await isolated.running(volumes=[DATA, deep])
    script = """
        set -e
        echo hello > /data/note
        mkdir -m 700 /data/folder
        ln -s note /data/link
        chmod 600 /data/note
        echo other > '/mnt/a b/deep/other'
        stat -c %m /data '/mnt/a b/deep'
    """
    result = await isolated.run(writer, script)
    assert result.stdout == "/data\n/mnt/a b/deep\n", result
    await publish(isolated, writer)
    await publish(isolated, writer, "more")
    read_only = {"name": "data", "mount_path": "/elsewhere", "read_only": True}
    reader = await isolated.running(volumes=[read_only, {"name": "more", "mount_path": "/data"}])
    script = """
        cat /elsewhere/link /data/other
        stat -c %a /elsewhere/note /elsewhere/folder
        touch /elsewhere/new || rm -f /elsewhere/note || chmod 777 /elsewhere || echo refused
    """
    result = await isolated.run(reader, script)
    assert result.stdout.splitlines() == ["hello", "other", "600", "700", "refused"]


async def test_a_volume_over_a_folder_of_the_sandbox_hides_it(isolated: RawClient) -> None:
    await create(isolated, "data")
    box = await isolated.running(volumes=[{"name": "data", "mount_path": "/workspace"}])
    assert (await isolated.run(box, "echo hello > note; pwd")).stdout == "/workspace\n"
    await publish(isolated, box)
    other = await isolated.running(volumes=[DATA])
    assert (await isolated.run(other, "cat /data/note")).stdout == "hello\n"


async def test_a_sandbox_sees_no_volume_that_is_not_its_own(isolated: RawClient) -> None:
    await create(isolated, "data")
    writer = await isolated.running(volumes=[DATA])
    await isolated.run(writer, "echo secret-of-data > /data/note")
    await publish(isolated, writer)
    other = await isolated.running()
    assert (await isolated.run(other, "ls /data")).exit_code != 0
    found = await isolated.run(
        other, "grep -rs secret-of-data /tmp /var/tmp /root /workspace /home"
    )
    assert found.stdout == ""


async def test_system_folders_take_volumes_in_full_isolation_only(
    platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    mount = {"name": "data", "mount_path": "/usr/share/data"}
    async with helpers.client_of(platform := platform_of_mode("full")) as client:
        await create(client, "data")
        box = await client.running(volumes=[mount])
        assert (await client.run(box, "echo hello > /usr/share/data/note")).exit_code == 0
    platform.reset()
    async with helpers.client_of(platform := platform_of_mode("bwrap")) as client:
        await create(client, "data")
        body = {"name": "a", "docker_image": "python", "volumes": [mount]}
        answer = await client.call("POST", "/api/v1/sandbox", body)
        assert answer.status == 501
        assert "read-only" in answer.body["detail"]
    platform.reset()


async def test_without_isolation_there_are_no_mounts(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    await create(client, "data")
    body = {"name": "a", "docker_image": "python", "volumes": [DATA]}
    answer = await client.call("POST", "/api/v1/sandbox", body)
    assert answer.status == 501
    assert "--isolation" in answer.body["detail"]


@pytest.mark.parametrize(
    ("field", "mounts"),
    [
        ("mount_path", ["/"]),
        ("mount_path", ["//"]),
        ("mount_path", ["/a/../b"]),
        ("mount_path", ["/a\0"]),
        ("mount_path", ["/" + "a" * 1024]),
        ("mount_path", ["/proc"]),
        ("mount_path", ["/proc/1"]),
        ("mount_path", ["/run"]),
        ("mount_path", ["relative"]),
        ("mount_path", ["/a", "/a/"]),
        ("mount_path", ["/a", "/a/b"]),
        ("volumes", [f"/v{number}" for number in range(9)]),
    ],
)
async def test_an_impossible_mount_is_refused(
    open_platform: OpenPlatform, field: str, mounts: list[str]
) -> None:
    _, client = await open_platform()
    volumes = [{"name": f"v{number}", "mount_path": path} for number, path in enumerate(mounts)]
    body = {"name": "a", "docker_image": "python", "volumes": volumes}
    answer = await client.call("POST", "/api/v1/sandbox", body)
    assert answer.status == 422, answer.body
    assert any(field in problem["loc"] for problem in answer.body["detail"])


async def test_a_volume_is_attached_once_to_a_sandbox(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    volumes = [DATA, {"name": "data", "mount_path": "/other"}]
    body = {"name": "a", "docker_image": "python", "volumes": volumes}
    answer = await client.call("POST", "/api/v1/sandbox", body)
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"] == ["body", "volumes", 1, "name"]


@pytest.mark.parametrize("name", ["", "Data", "-a", "a-", "a_b", "a" * 41])
async def test_an_impossible_name_is_refused(open_platform: OpenPlatform, name: str) -> None:
    _, client = await open_platform()
    answer = await client.call("POST", "/api/v1/sandbox/volumes", {"name": name})
    assert answer.status == 422


async def test_a_publish_fails_with_its_sandbox_and_lets_others_publish(
    platform_of_mode: PlatformOfMode, open_platform: OpenPlatform
) -> None:
    platform_of_mode("bwrap")  # skips where it does not work
    platform, client = await open_platform(isolation="bwrap", checkpoint_time=60)
    await create(client, "data")
    first, second = [await client.running(volumes=[DATA]) for _ in range(2)]
    lost = await publish(client, first)
    await client.call("DELETE", f"/api/v1/sandbox/{first['id']}")
    answer = await client.call("GET", f"/api/v1/sandbox/checkpoints/{lost['id']}")
    assert answer.body["state"] == "FAILED"
    assert await head(client) is None
    published = await publish(client, second)
    await platform.advance(60)
    assert await head(client) == published["id"]
    body = {"name": "a", "checkpoint_id": published["id"]}
    answer = await client.call("POST", "/api/v1/sandbox", body)
    assert answer.status == 422, "it holds no root filesystem"


async def test_volumes_survive_a_restart_with_their_files(
    tmp_path: Path, platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    platform_of_mode("bwrap")  # skips where it does not work
    async with (
        LocalPlatform(data_dir=tmp_path, isolation="bwrap") as platform,
        helpers.client_of(platform) as client,
    ):
        volume = await create(client, "data", team_id="team-a")
        writer = await client.running(volumes=[DATA], team_id="team-a")
        await client.run(writer, "echo hello > /data/note")
        published = await publish(client, writer)
    async with (
        LocalPlatform(data_dir=tmp_path, isolation="bwrap") as platform,
        helpers.client_of(platform) as client,
    ):
        path = "/api/v1/sandbox/volumes/data?team_id=team-a"
        found = (await client.call("GET", path)).body
        assert (found["id"], found["head_checkpoint_id"]) == (volume["id"], published["id"])
        reader = await client.running(volumes=[DATA], team_id="team-a")
        assert (await client.run(reader, "cat /data/note")).stdout == "hello\n"
        await client.call("DELETE", f"/api/v1/sandbox/{reader['id']}")
        assert (await client.call("DELETE", path)).status == 204
        assert list((tmp_path / "checkpoints").iterdir()) == []
    async with (
        LocalPlatform(data_dir=tmp_path, isolation="bwrap") as platform,
        helpers.client_of(platform) as client,
    ):
        assert (await client.call("GET", path)).status == 404


async def test_a_reset_forgets_volumes(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    await create(client, "data")
    await platform.reset()
    await create(client, "data")
