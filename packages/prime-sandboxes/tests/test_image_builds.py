"""Building images: packing, uploading, starting and waiting."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIClient,
    APIConnectionError,
    APIResponseError,
    AsyncImageClient,
    AsyncSandboxClient,
    BuildImageRequest,
    CreateSandboxRequest,
    ForbiddenError,
    ImageBuildError,
    ImageBuildTimeoutError,
    ImageClient,
    NotFoundError,
)
from prime_sandboxes.build_context import DOCKERFILE_NAME

if TYPE_CHECKING:
    from conftest import MakeContext, ScriptedServer, StartPlatform

pytestmark = pytest.mark.timeout(60)

Reset = Literal["before_commit", "after_commit"]


async def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_folder_becomes_an_image_that_sandboxes_start_from(
    images: AsyncImageClient, context: MakeContext, platform: LocalPlatform
) -> None:
    built = await images.build("myapp:v1.0.0", context())
    assert (built.status, built.image_name, built.image_tag) == ("COMPLETED", "myapp", "v1.0.0")
    assert built.full_image_path == "prime/local/myapp:v1.0.0"
    async with AsyncSandboxClient(client=images.client) as client:
        request = CreateSandboxRequest(name="box", docker_image=built.full_image_path)
        box = await client.create(request)
        await client.wait_for_creation(box.id)
        assert (await client.execute_command(box.id, "echo $GREETING")).stdout == "hello\n"
    requests = platform.ledger()["requests"]
    assert requests["initiate_image_build"] == requests["upload_build_context"] == 1
    assert requests["start_image_build"] == 1


def test_the_sync_client_builds_too(
    prime_platform_server: Any, home: Path, monkeypatch: pytest.MonkeyPatch, context: MakeContext
) -> None:
    prime_platform_server.reset()
    for name, value in prime_platform_server.env.items():
        monkeypatch.setenv(name, value)
    with APIClient() as api, ImageClient(api) as images:
        assert images.client.api_key == api.api_key
        built = images.build("myapp", context())
        assert built.full_image_path == "prime/local/myapp:latest"
        assert [row.image_name for row in images.iter(search="MYAPP")] == ["myapp"]
        assert images.get_build_status(built.id or "")["status"] == "COMPLETED"
        assert images.publish("myapp:latest").success
        assert images.delete("myapp:latest")["success"]
        assert images.list().data == []


async def test_the_dockerfile_may_lie_elsewhere(
    images: AsyncImageClient, context: MakeContext, tmp_path: Path
) -> None:
    other = tmp_path / "Dockerfile.prod"
    other.write_text("FROM debian\nENV A=1\n")
    built = await images.build("app:v1", context("FROM nobody/nothing"), dockerfile=other)
    assert built.status == "COMPLETED"


async def test_a_failed_build_raises_with_the_end_of_its_log(
    images: AsyncImageClient, context: MakeContext
) -> None:
    with pytest.raises(ImageBuildError, match="line 2: CMD is not simulated") as caught:
        await images.build("app:v1", context("FROM debian\nCMD ls"))
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.status, error.image) == ("FAILED", "prime/local/app:v1")
    assert "CMD" in (error.error_message or "")
    with pytest.raises(ImageBuildError, match="app:v1"):
        await images.wait_for_build(error.build_id)


async def test_a_build_that_lasts_too_long_is_let_go_and_can_be_waited_for_again(
    start_platform: StartPlatform, context: MakeContext
) -> None:
    platform = await start_platform(image_build_time=600)
    async with AsyncImageClient() as images:
        began = time.monotonic()
        with pytest.raises(ImageBuildTimeoutError, match="goes on") as caught:
            await images.build("app:v1", context(), timeout=0.3)
        assert time.monotonic() - began < 5
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status == "BUILDING"
        assert vars(pickle.loads(pickle.dumps(caught.value))) == vars(caught.value)
        await platform.advance(601)
        assert (await images.wait_for_build(caught.value.build_id)).status == "COMPLETED"


@pytest.mark.parametrize("reset", ["before_commit", "after_commit"])
async def test_a_lost_start_starts_the_build_once(
    images: AsyncImageClient, context: MakeContext, platform: LocalPlatform, reset: Reset
) -> None:
    platform.add_faults(FaultRule("start_image_build", nth=1, reset=reset))
    assert (await images.build("app:v1", context())).status == "COMPLETED"
    # When the first start has arrived, there is no second one.
    expected = 2 if reset == "before_commit" else 1
    assert platform.ledger()["requests"]["start_image_build"] == expected


async def test_a_lost_request_for_a_build_is_not_repeated(
    images: AsyncImageClient, context: MakeContext, platform: LocalPlatform
) -> None:
    platform.add_faults(FaultRule("initiate_image_build", nth=1, reset="after_commit"))
    with pytest.raises(APIConnectionError):
        await images.build("app:v1", context())
    assert platform.ledger()["requests"]["initiate_image_build"] == 1
    assert len((await images.list_builds()).data) == 1


@pytest.mark.parametrize(
    "fault",
    [{"reset": "before_commit"}, {"reset": "after_commit"}, {"status": 503}],
    ids=["before", "after", "503"],
)
async def test_a_broken_upload_is_sent_again_whole(
    images: AsyncImageClient,
    context: MakeContext,
    platform: LocalPlatform,
    fault: dict[str, Any],
) -> None:
    folder = context()
    (folder / "noise").write_bytes(os.urandom(2 * 1024 * 1024))
    platform.add_faults(FaultRule("upload_build_context", nth=1, **fault))
    assert (await images.build("app:v1", folder)).status == "COMPLETED"
    assert platform.ledger()["requests"]["upload_build_context"] == 2


async def test_an_expired_upload_is_a_typed_error(
    images: AsyncImageClient, context: MakeContext, platform: LocalPlatform
) -> None:
    expired = "<Error>expired</Error>"
    platform.add_faults(FaultRule("upload_build_context", status=403, body=expired))
    with pytest.raises(ForbiddenError, match="expired") as caught:
        await images.build("app:v1", context())
    assert caught.value.operation == "upload_build_context"
    assert "signature" not in str(caught.value)


async def test_the_upload_host_sees_neither_key_nor_team(
    platform: LocalPlatform, scripted: ScriptedServer, context: MakeContext
) -> None:
    scripted.answer(scripted.head(200, "text/plain"))
    begun = {
        "build_id": "bld_1",
        "upload_url": f"{scripted.url}/bucket/ctx%2F1?X-Sig=a%2Bb&x=1",
        "expires_in": 600,
        "fullImagePath": "prime/acme/app:v1",
    }
    done = {"id": "bld_1", "status": "COMPLETED"}
    platform.add_faults(
        FaultRule("initiate_image_build", status=201, body=json.dumps(begun)),
        FaultRule("start_image_build", status=200, body=json.dumps(done)),
        FaultRule("get_image_build", status=200, body=json.dumps(done)),
    )
    async with AsyncImageClient() as images:
        built = await images.build("app:v1", context(), team_id="team_1")
    assert built.full_image_path == "prime/acme/app:v1"
    [upload] = scripted.received
    assert (upload.method, upload.path) == ("PUT", "/bucket/ctx%2F1?X-Sig=a%2Bb&x=1")
    assert upload.headers["content-type"] == "application/octet-stream"
    assert upload.headers["content-length"] == str(len(upload.body))
    assert "transfer-encoding" not in upload.headers
    assert "authorization" not in upload.headers
    assert "x-prime-team-id" not in upload.headers
    assert platform.api_key.encode() not in upload.body


async def test_an_answer_without_an_upload_url_is_refused(
    images: AsyncImageClient, platform: LocalPlatform
) -> None:
    body = json.dumps({"build_id": "b", "fullImagePath": "x"})
    platform.add_faults(FaultRule("initiate_image_build", status=201, body=body))
    with pytest.raises(APIResponseError, match="where to upload"):
        await images.initiate_build(BuildImageRequest(image_name="app", image_tag="v1"))


async def test_a_cancelled_build_leaves_nothing_running(
    images: AsyncImageClient, context: MakeContext, platform: LocalPlatform
) -> None:
    platform.add_faults(FaultRule("upload_build_context", delay_before=20))
    building = asyncio.create_task(images.build("app:v1", context()))
    await until(lambda: "upload_build_context" in platform.ledger()["requests"])
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(building, 5)
    assert (await images.list_builds()).data[0].status == "PENDING"
    assert "start_image_build" not in platform.ledger()["requests"]


async def test_many_builds_are_waited_for_together(
    images: AsyncImageClient, context: MakeContext
) -> None:
    folder = context()
    built = await asyncio.gather(*(images.build(f"app-{n}:v1", folder) for n in range(8)))
    assert {build.image_name for build in built} == {f"app-{n}" for n in range(8)}


async def test_an_unknown_build_ends_the_wait(images: AsyncImageClient) -> None:
    with pytest.raises(NotFoundError):
        await images.wait_for_build("bld_nobody")
    with pytest.raises(NotFoundError):
        await images.get_build_status("bld_nobody")


def test_the_packed_dockerfile_has_the_documented_name() -> None:
    assert DOCKERFILE_NAME == ".__prime_dockerfile__"
