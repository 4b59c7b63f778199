"""Uses the vendor's client of images, and prints as JSON what it saw.

Runs in an environment that holds the vendor's package, not ours.
"""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
import time
import urllib.request
from typing import Any

from prime_sandboxes import (
    APIClient,
    AsyncImageClient,
    BuildImageRequest,
    CreateSandboxRequest,
    ImageClient,
    ImageUpdateItem,
    ImageUpdatePatch,
    ImageUpdateSource,
    ImageVisibility,
    PersonalImageOwner,
    SandboxClient,
    TeamImageOwner,
    UpdateImagesRequest,
)


def upload(url: str, dockerfile: str) -> int:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("Dockerfile")
        member.size = len(dockerfile)
        tar.addfile(member, io.BytesIO(dockerfile.encode()))
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, buffer.getvalue(), headers, method="PUT")
    with urllib.request.urlopen(request, timeout=20) as response:
        return int(response.status)


def build(images: Any, name: str, dockerfile: str) -> str:
    begun = images.initiate_build(BuildImageRequest(image_name=name, image_tag="v1"))
    upload(begun.upload_url, dockerfile)
    images.start_build(begun.build_id)
    deadline = time.monotonic() + 20
    status = ""
    while status not in ("COMPLETED", "FAILED") and time.monotonic() < deadline:
        time.sleep(0.05)
        status = images.get_build_status(begun.build_id)["status"]
    return status


def change(source: ImageUpdateSource, **wanted: Any) -> ImageUpdateItem:
    return ImageUpdateItem(source=source, set=ImageUpdatePatch(**wanted))


def use_images() -> dict[str, Any]:
    client = APIClient()
    images: Any = ImageClient(client)
    seen: dict[str, Any] = {}
    seen["built"] = build(images, "app", "FROM python:3.11-slim\nENV WHO=vendor\n")
    seen["failed"] = build(images, "broken", "FROM python\nCMD ls\n")
    [row] = images.list(search="app").data
    seen["row"] = [row.full_image_path, str(row.status.value), str(row.visibility.value)]
    copied = images.transfer_image("python:3.12")
    seen["copied"] = [copied.full_image_path, copied.upload_url]
    several = images.transfer_image("debian:12,nobody/nothing")
    seen["several"] = [result.error for result in several.results]
    own = ImageUpdateSource(owner=PersonalImageOwner(), name="app", tag="v1")
    team = TeamImageOwner(team_id="t1")
    dry = images.update_images(UpdateImagesRequest(dry_run=True, updates=[change(own, owner=team)]))
    seen["dry"] = [dry.dry_run, dry.results[0].after.owner.team_id]
    published = images.update_images(
        UpdateImagesRequest(
            updates=[
                change(own, visibility=ImageVisibility.PUBLIC, tag="v2"),
                change(ImageUpdateSource(reference="gone:v1"), tag="v2"),
            ]
        )
    )
    seen["changed"] = [
        result.error.code if result.error else str(result.after.tag) for result in published.results
    ]
    sandboxes = SandboxClient(client)
    box = sandboxes.create(CreateSandboxRequest(name="box", docker_image="prime/local/app:v2"))
    sandboxes.wait_for_creation(box.id)
    seen["who"] = sandboxes.execute_command(box.id, "echo $WHO").stdout
    sandboxes.delete(box.id)
    seen["deleted"] = client.delete("/images/prime/local/app/v2")["success"]
    seen["left"] = asyncio.run(count())
    return seen


async def count() -> list[int]:
    async with AsyncImageClient() as images:
        personal, shared = await images.list(), await images.list(platform=True, limit=250)
        return [len(personal.data), len(shared.data)]


if __name__ == "__main__":
    print(json.dumps(use_images()))
