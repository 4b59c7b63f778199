"""The clients of images against a local platform."""

from __future__ import annotations

import asyncio
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, FaultRule, LocalPlatform
from prime_sandboxes import (
    AsyncAPIClient,
    AsyncImageClient,
    BuildImageRequest,
    BuildImageResponse,
    BulkBuildImageResponse,
    ImageBuildError,
    ImageUpdateError,
    ImageUpdateItem,
    ImageUpdatePatch,
    ImageUpdateSource,
    ImageVisibility,
    NotFoundError,
    QuotaExceededError,
    UpdateImagesRequest,
)
from prime_sandboxes.build_context import DOCKERFILE_NAME, packed_context
from prime_sandboxes.image_builds import upload_context

if TYPE_CHECKING:
    from conftest import MakeContext, StartPlatform

pytestmark = pytest.mark.timeout(60)

QUAY = ".".join(("quay", "io"))


async def push(images: AsyncImageClient, folder: Path, name: str = "app") -> None:
    """Builds an image without the client's unhurried wait."""
    begun = await images.initiate_build(
        BuildImageRequest(image_name=name, image_tag="v1", dockerfile_path=DOCKERFILE_NAME)
    )
    assert isinstance(begun, BuildImageResponse)
    async with packed_context(folder, folder / "Dockerfile") as (archive, size):
        await upload_context(images._transport, begun, archive, size)
    status = (await images.start_build(begun.build_id))["status"]
    while status == "BUILDING":
        await asyncio.sleep(0.01)
        status = (await images.get_build_status(begun.build_id))["status"]
    assert status == "COMPLETED"


async def names(images: AsyncImageClient, **options: Any) -> list[str]:
    return [f"{row.image_name}:{row.image_tag}" async for row in images.iter(**options)]


async def test_wrong_arguments_are_refused_before_sending(
    images: AsyncImageClient, context: MakeContext, platform: LocalPlatform, tmp_path: Path
) -> None:
    folder = context()
    with pytest.raises(ValueError, match="name"):
        await images.build("a b:v1", folder)
    with pytest.raises(ValueError, match="no slash"):
        await images.build("prime/acme/app:v1", folder)
    with pytest.raises(ValueError, match="timeout"):
        await images.build("app:v1", folder, timeout=0)
    with pytest.raises(FileNotFoundError, match="dockerfile"):
        await images.build("app:v1", folder, dockerfile=tmp_path / "none")
    with pytest.raises(ValueError, match="keeps its name"):
        await images.transfer_image("ubuntu:22.04", image_name="x")
    for wrong in ({"offset": -1}, {"limit": 0}, {"limit": 251}, {"platform": True, "team_id": "t"}):
        with pytest.raises(ValueError, match=r"offset|excludes"):
            await images.list(**wrong)
    with pytest.raises(ValueError, match="offset"):
        await images.list_builds(limit=0)
    for reference in ("app", "a//b:v1", "../x:v1"):
        with pytest.raises(ValueError, match=r"tag|name"):
            await images.delete(reference)
    with pytest.raises(TypeError, match="BuildImageRequest"):
        await images.initiate_build({"image_name": "x"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="UpdateImagesRequest"):
        await images.update_images({})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="AsyncAPIClient"):
        AsyncImageClient("key")  # type: ignore[arg-type]
    assert platform.ledger()["requests"] == {}


async def test_images_are_listed_page_by_page_and_searched(
    images: AsyncImageClient, platform: LocalPlatform
) -> None:
    for number in range(3):
        request = BuildImageRequest(image_name=f"app-{number}", image_tag="v1")
        await images.initiate_build(request)
    page = await images.list(offset=1, limit=1)
    assert (page.total_count, [row.image_name for row in page.data]) == (3, ["app-1"])
    assert page.data[0].status == "PENDING"
    assert await names(images) == ["app-2:v1", "app-1:v1", "app-0:v1"]
    assert await names(images, search="APP-2") == ["app-2:v1"]
    assert await names(images, platform=True) == []


async def test_all_images_are_read_over_many_pages(
    images: AsyncImageClient, platform: LocalPlatform
) -> None:
    def page(first: int, count: int) -> str:
        rows = [
            {
                "id": f"img_{number}",
                "artifactType": "VM_SANDBOX",
                "imageName": f"a{number}",
                "imageTag": "v1",
                "status": "COMPLETED",
                "createdAt": "2026-11-20T09:15:00Z",
            }
            for number in range(first, first + count)
        ]
        return json.dumps({"data": rows, "totalCount": 260, "offset": first, "limit": 250})

    platform.add_faults(
        FaultRule("list_images", times=1, status=200, body=page(0, 250)),
        FaultRule("list_images", times=1, status=200, body=page(250, 10)),
    )
    assert len(await names(images)) == 260
    assert platform.ledger()["requests"]["list_images"] == 2


async def test_the_configured_team_is_meant_where_none_is_named(
    platform: LocalPlatform, context: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "t1")
    async with AsyncImageClient() as images:
        built = await images.build("app:v1", context())
        assert built.full_image_path == "prime/team-t1/app:v1"
        assert await names(images) == ["app:v1"]
        assert await names(images, team_id="") == []
        assert await names(images, platform=True) == []
        result = await images.publish("app:v1")
        assert result.after is not None
        assert result.after.visibility == ImageVisibility.PUBLIC
        with pytest.raises(NotFoundError):
            await images.delete("app:v1", team_id="")
        # As documented, a bare request is the personal account's.
        request = BuildImageRequest(image_name="own", image_tag="v1")
        begun = await images.initiate_build(request)
        assert isinstance(begun, BuildImageResponse)
        assert begun.full_image_path == "prime/local/own:v1"
        assert (await images.delete("app:v1"))["success"]


async def test_images_of_registries_are_copied(images: AsyncImageClient) -> None:
    one = await images.transfer_image("python:3.12")
    assert isinstance(one, BuildImageResponse)
    assert (one.full_image_path, one.visibility, one.upload_url) == ("python:3.12", "PUBLIC", None)
    assert (await images.wait_for_build(one.build_id)).status == "COMPLETED"
    assert await names(images, platform=True) == ["python:3.12"]
    copy = await images.transfer_image(f"{QUAY}/x/debian:12", image_name="mine", team_id="t1")
    assert isinstance(copy, BuildImageResponse)
    assert copy.full_image_path == "prime/team-t1/mine:12"
    both = await images.transfer_image(f"debian:12,{QUAY}/x/nothing")
    assert isinstance(both, BulkBuildImageResponse)
    assert [result.error for result in both.results] == [None, "source image not found"]
    missing = await images.transfer_image("nobody/nothing:v9")
    assert isinstance(missing, BuildImageResponse)
    with pytest.raises(ImageBuildError, match="Failed to pull"):
        await images.wait_for_build(missing.build_id)


async def test_changes_are_results_and_a_dry_run_changes_nothing(
    images: AsyncImageClient, context: MakeContext
) -> None:
    await push(images, context())
    updates = [
        ImageUpdateItem(
            source=ImageUpdateSource(reference=reference), set=ImageUpdatePatch(name="new")
        )
        for reference in ("app:v1", "gone:v1")
    ]
    answer = await images.update_images(UpdateImagesRequest(dry_run=True, updates=updates))
    assert (answer.success, answer.dry_run) == (False, True)
    assert [result.success for result in answer.results] == [True, False]
    assert answer.results[1].error is not None
    assert answer.results[1].error.code == "image_not_found"
    assert await names(images) == ["app:v1"]
    await images.update_images(UpdateImagesRequest(updates=updates[:1]))
    assert await names(images) == ["new:v1"]


async def test_publishing_and_its_reverse_say_what_is_wrong(
    images: AsyncImageClient, context: MakeContext
) -> None:
    await push(images, context())
    assert (await images.publish("prime/local/app:v1")).success
    assert (await images.list()).data[0].visibility == ImageVisibility.PUBLIC
    assert (await images.unpublish("app:v1")).success
    with pytest.raises(ImageUpdateError, match="gone:v1 was not changed") as caught:
        await images.publish("gone:v1")
    assert (caught.value.code, caught.value.reference) == ("image_not_found", "gone:v1")


async def test_a_delete_by_a_full_reference_keeps_its_slashes(
    images: AsyncImageClient, context: MakeContext, platform: LocalPlatform
) -> None:
    await push(images, context())
    platform.add_faults(FaultRule("delete_image", nth=1, reset="after_commit"))
    # The answer was lost; that it is gone on the second attempt is no error.
    assert await images.delete("prime/local/app:v1") == {}
    with pytest.raises(NotFoundError):
        await images.delete("prime/local/app:v1")


async def test_an_image_limit_is_a_quota_and_not_waited_for(start_platform: StartPlatform) -> None:
    platform = await start_platform(limits=True, assumptions=Assumptions(image_limit=1))
    async with AsyncImageClient() as images:
        await images.initiate_build(BuildImageRequest(image_name="a", image_tag="v1"))
        with pytest.raises(QuotaExceededError, match="Image limit exceeded"):
            await images.initiate_build(BuildImageRequest(image_name="b", image_tag="v1"))
    assert platform.ledger()["requests"]["initiate_image_build"] == 2


async def test_noise_of_a_newer_server_does_no_harm(
    start_platform: StartPlatform, context: MakeContext
) -> None:
    await start_platform(noise=True)
    async with AsyncImageClient() as images:
        await push(images, context())
        assert (await images.publish("app:v1")).success
        assert await names(images) == ["app:v1"]
        assert (await images.list_builds()).data[0].artifacts


async def test_clients_share_connections_and_pickle_without_the_key(
    platform: LocalPlatform,
) -> None:
    async with AsyncAPIClient() as api:
        images = AsyncImageClient(api)
        assert images.client is api
        data = pickle.dumps(images)
        assert platform.api_key.encode() not in data
        await images.aclose()
        again = pickle.loads(data)
        assert (await again.list()).data == []
        await again.aclose()
