"""Images over HTTP: lists, references, copies, changes, deletion and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import BUILD, IMAGES, begin, ended, finished, packed, put, start

from prime_local import Assumptions, LocalPlatform

pytestmark = pytest.mark.timeout(60)

QUAY = ".".join(("quay", "io"))
GOOGLE = ".".join(("gcr", "io"))


async def names(client: Any, query: str = "") -> list[str]:
    answer = await client.call("GET", IMAGES + query)
    assert answer.status == 200, answer.body
    return [f"{row['imageName']}:{row['imageTag']}" for row in answer.body["data"]]


async def patched(client: Any, *updates: dict[str, Any], dry_run: bool = False) -> dict[str, Any]:
    body = {"mode": "explicit", "dryRun": dry_run, "updates": list(updates)}
    answer = await client.call("PATCH", IMAGES, body)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.body
    return found


def change(reference: str, **wanted: Any) -> dict[str, Any]:
    return {"source": {"reference": reference}, "set": wanted}


async def test_images_are_listed_searched_and_paged(client: Any) -> None:
    for name, tag in (("alpha", "v1"), ("beta", "v1"), ("beta", "Nightly")):
        await finished(client, "FROM debian", name=name, tag=tag)
    pending = await begin(client, "gamma")
    assert await names(client) == ["gamma:v1", "beta:Nightly", "beta:v1", "alpha:v1"]
    assert await names(client, "?search=BETA") == ["beta:Nightly", "beta:v1"]
    assert await names(client, "?search=beta:night") == ["beta:Nightly"]
    page = (await client.call("GET", IMAGES + "?offset=1&limit=2")).body
    assert (page["totalCount"], page["offset"], page["limit"]) == (4, 1, 2)
    assert [row["imageName"] for row in page["data"]] == ["beta", "beta"]
    assert (await client.call("GET", IMAGES + "?limit=251")).status == 422
    assert (await client.call("GET", IMAGES + "?ownerScope=platform&teamId=t")).status == 422
    builds = (await client.call("GET", IMAGES + "/builds?limit=1")).body
    assert (builds["totalCount"], builds["data"][0]["id"]) == (4, pending["build_id"])


async def test_an_image_that_is_built_again_has_two_rows_and_counts_once(client: Any) -> None:
    await finished(client, "FROM debian", visibility="PUBLIC")
    begun = await begin(client)
    # A new push keeps the visibility.
    assert begun["visibility"] == "PUBLIC"
    listed = (await client.call("GET", IMAGES + "?limit=1")).body
    assert [row["status"] for row in listed["data"]] == ["COMPLETED", "PENDING"]
    assert listed["totalCount"] == 1
    await put(client, begun["upload_url"], packed({"Dockerfile": "FROM nobody/nothing"}))
    await start(client, begun)
    assert (await ended(client, begun["build_id"]))["status"] == "FAILED"
    [row] = (await client.call("GET", IMAGES)).body["data"]
    assert (row["status"], row["visibility"]) == ("COMPLETED", "PUBLIC")


async def test_a_first_build_that_failed_is_listed_once(client: Any) -> None:
    for _ in range(2):
        await finished(client, "FROM nobody/nothing")
    [row] = (await client.call("GET", IMAGES)).body["data"]
    assert (row["status"], row["visibility"]) == ("FAILED", "PRIVATE")
    assert "no such image" in row["errorMessage"]


async def test_teams_have_images_of_their_own(client: Any) -> None:
    await finished(client, "FROM debian\nENV WHO=me")
    begun = await begin(client, team_id="t1")
    assert begun["fullImagePath"] == "prime/team-t1/app:v1"
    context = packed({"Dockerfile": "FROM debian\nENV WHO=team"})
    await put(client, begun["upload_url"], context)
    await start(client, begun)
    await ended(client, begun["build_id"])
    [row] = (await client.call("GET", IMAGES + "?teamId=t1")).body["data"]
    assert (row["ownerType"], row["teamId"]) == ("team", "t1")
    box = await client.running(docker_image="prime/team-t1/app:v1")
    assert (await client.run(box, "echo $WHO")).stdout == "team\n"
    assert (await client.call("DELETE", IMAGES + "/app/v1?teamId=t1")).status == 200
    assert await names(client) == ["app:v1"]


async def test_a_reference_names_an_image_in_several_ways(client: Any) -> None:
    await finished(client, "FROM debian\nENV A=1", tag="latest")
    first = await client.create()
    user = first["userId"]
    for reference in ("prime/local/app", f"prime/{user}/app:latest"):
        box = await client.running(docker_image=reference)
        assert (await client.run(box, "echo $A")).stdout == "1\n"
    for reference in ("prime/local/none:v1", "prime/somebody/app", "app:latest"):
        created = await client.create(docker_image=reference)
        failed = await client.until(created, "ERROR")
        assert failed["errorType"] == "IMAGE_PULL_FAILED"


async def test_an_image_starts_from_another(client: Any) -> None:
    await finished(client, "FROM debian\nENV A=1 B=2", name="base")
    await finished(client, "FROM prime/local/base:v1\nENV B=$A$B", name="app")
    box = await client.running(docker_image="prime/local/app:v1")
    assert (await client.run(box, "echo $A $B")).stdout == "1 12\n"


async def test_a_source_of_docker_hub_becomes_a_public_platform_image(client: Any) -> None:
    answer = await client.call("POST", BUILD, {"source_image": "library/python:3.12"})
    assert (answer.status, answer.body["upload_url"]) == (201, None)
    assert answer.body["fullImagePath"] == "python:3.12"
    assert (await ended(client, answer.body["build_id"]))["status"] == "COMPLETED"
    [row] = (await client.call("GET", IMAGES + "?ownerScope=platform")).body["data"]
    assert (row["visibility"], row["ownerType"]) == ("PUBLIC", "platform")
    for wrong in ({"image_name": "x"}, {"team_id": "t"}, {"visibility": "PRIVATE"}):
        answer = await client.call("POST", BUILD, {"source_image": "python:3.12", **wrong})
        assert answer.status == 422


async def test_a_transferred_image_needs_no_build_at_its_first_use(open_platform: Any) -> None:
    platform, client = await open_platform(image_build_time=600)
    answer = await client.call("POST", BUILD, {"source_image": "python:3.12"})
    await platform.advance(601)
    await ended(client, answer.body["build_id"])
    assert (await client.create(docker_image="python:3.12"))["pendingImageBuildId"] is None
    assert (await client.create(docker_image="python:3.13"))["pendingImageBuildId"]


async def test_several_sources_are_copied_as_far_as_they_can(client: Any) -> None:
    sources = ["python:3.12", f"{QUAY}/org/debian:12", "missing:tag", f"{GOOGLE}/x/debian", "a.b/c"]
    answer = await client.call("POST", BUILD, {"source_image": ",".join(sources)})
    results = answer.body["results"]
    assert [result["sourceImage"] for result in results] == sources
    assert [result["build"] and result["build"]["fullImagePath"] for result in results] == [
        "python:3.12",
        "prime/local/debian:12",
        None,
        None,
        None,
    ]
    errors = [result["error"] for result in results[2:]]
    assert errors[0] == "source image not found"
    assert "Google" in errors[1]
    assert "a.b" in errors[2]
    single = await client.call("POST", BUILD, {"source_image": f"{GOOGLE}/x/debian"})
    assert single.status == 422
    begun = await client.call("POST", BUILD, {"source_image": "nobody/nothing:v9"})
    assert "Failed to pull" in (await ended(client, begun.body["build_id"]))["errorMessage"]


async def test_a_copy_is_named_after_its_source(client: Any) -> None:
    digest = "sha256:" + "0123456789abcdef" * 4
    answer = await client.call("POST", BUILD, {"source_image": f"{QUAY}/org/Debian@{digest}"})
    assert answer.body["fullImagePath"] == "prime/local/debian:sha256-0123456789abcdef"
    named = {"source_image": f"{QUAY}/org/debian", "image_name": "mine", "image_tag": "t"}
    answer = await client.call("POST", BUILD, named)
    assert answer.body["fullImagePath"] == "prime/local/mine:t"


async def test_changes_are_made_or_refused_one_by_one(client: Any) -> None:
    await finished(client, "FROM debian\nENV A=1")
    await finished(client, "FROM debian", name="other")
    answer = await patched(
        client,
        change("prime/local/app:v1", name="new", visibility="PUBLIC"),
        change("tool:v2", visibility="PUBLIC"),
        {
            "source": {"owner": {"type": "personal"}, "name": "other", "tag": "v1"},
            "set": {"name": "new"},
        },
    )
    assert (answer["success"], answer["dryRun"]) == (False, False)
    first, second, third = answer["results"]
    assert (first["before"]["name"], first["after"]["name"]) == ("app", "new")
    assert first["after"]["visibility"] == "PUBLIC"
    assert second["error"] == {"code": "image_not_found", "message": "Image tool:v2 not found"}
    assert third["error"]["code"] == "destination_exists"
    assert sorted(await names(client)) == ["new:v1", "other:v1"]
    box = await client.running(docker_image="prime/local/new:v1")
    assert (await client.run(box, "echo $A")).stdout == "1\n"
    gone = await client.create(docker_image="prime/local/app:v1")
    assert (await client.until(gone, "ERROR"))["errorType"] == "IMAGE_PULL_FAILED"


async def test_a_dry_run_says_what_would_become_and_changes_nothing(client: Any) -> None:
    await finished(client, "FROM debian")
    answer = await patched(
        client,
        change("app:v1", tag="v2"),
        change("app:v1", tag="v3"),
        change("app:v2", owner={"type": "team", "teamId": "t1"}),
        dry_run=True,
    )
    assert [result["success"] for result in answer["results"]] == [True, False, True]
    assert answer["results"][2]["after"]["owner"] == {"type": "team", "teamId": "t1"}
    assert await names(client) == ["app:v1"]


async def test_images_move_up_only(client: Any) -> None:
    await finished(client, "FROM debian")
    team = {"type": "team", "teamId": "t1"}
    assert (await patched(client, change("app:v1", owner=team)))["success"]
    assert await names(client, "?teamId=t1") == ["app:v1"]
    back = await patched(client, change("prime/team-t1/app:v1", owner={"type": "personal"}))
    assert back["results"][0]["error"]["code"] == "invalid_owner"
    up = await patched(client, change("prime/team-t1/app:v1", owner={"type": "platform"}))
    assert up["results"][0]["after"]["visibility"] == "PUBLIC"
    private = {"source": {"owner": {"type": "platform"}, "name": "app", "tag": "v1"}}
    hidden = await patched(client, {**private, "set": {"visibility": "PRIVATE"}})
    assert hidden["results"][0]["error"]["code"] == "invalid_visibility"
    assert (await client.running(docker_image="app:v1"))["dockerImage"] == "app:v1"


async def test_who_is_no_admin_leaves_platform_images_alone(open_platform: Any) -> None:
    _, client = await open_platform(assumptions=Assumptions(platform_role="member"))
    await finished(client, "FROM debian")
    moved = await patched(client, change("app:v1", owner={"type": "platform"}))
    assert moved["results"][0]["error"]["code"] == "forbidden"
    body = {"image_name": "x", "image_tag": "y", "owner_scope": "platform"}
    assert (await client.call("POST", BUILD, body)).status == 403
    begun = await client.call("POST", BUILD, {"source_image": "python:3.12"})
    await ended(client, begun.body["build_id"])
    assert (await client.call("DELETE", IMAGES + "/python/3.12")).status == 403


@pytest.mark.parametrize(
    "path", ["app/v1", "prime/local/app/v1", "local/app/v1", "prime%2Flocal%2Fapp/v1"]
)
async def test_an_image_is_deleted_by_every_name_it_has(client: Any, path: str) -> None:
    await finished(client, "FROM debian")
    answer = await client.call("DELETE", f"{IMAGES}/{path}")
    assert (answer.status, answer.body["success"]) == (200, True)
    assert (await client.call("DELETE", f"{IMAGES}/{path}")).status == 404
    assert await names(client) == []


async def test_a_deleted_image_ends_its_builds(client: Any) -> None:
    begun = await begin(client)
    assert (await client.call("DELETE", IMAGES + "/app/v1")).status == 200
    assert (await client.call("GET", f"{BUILD}/{begun['build_id']}")).status == 404
    assert await put(client, begun["upload_url"], b"x") == 404


async def test_image_limits_are_429_without_a_time_to_wait(open_platform: Any) -> None:
    _, client = await open_platform(assumptions=Assumptions(image_limit=1))
    await begin(client)
    await begin(client)  # another build of the same image
    answer = await client.call("POST", BUILD, {"image_name": "b", "image_tag": "v1"})
    assert (answer.status, answer.body["detail"]) == (429, "Image limit exceeded")
    assert "Retry-After" not in answer.headers


@pytest.mark.parametrize(
    "wrong",
    [
        {"image_name": "app"},
        {"image_tag": "v1"},
        {"image_name": "a/b", "image_tag": "v1"},
        {"image_name": "app", "image_tag": "-x"},
        {"image_name": "app", "image_tag": "v1", "platform": "linux/386"},
        {"image_name": "x", "source_image": "python:3,debian:12"},
    ],
)
async def test_a_build_that_cannot_be_is_refused(client: Any, wrong: dict[str, str]) -> None:
    assert (await client.call("POST", BUILD, wrong)).status == 422


async def test_images_survive_a_restart_and_unfinished_builds_do_not(
    open_platform: Any, tmp_path: Path, helpers: Any
) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        await finished(client, "FROM debian\nENV A=1\nUSER root", visibility="PUBLIC")
        begun = await begin(client, "other")
    _, client = await open_platform(data_dir=tmp_path)
    assert sorted(await names(client)) == ["app:v1", "other:v1"]
    build = await ended(client, begun["build_id"])
    assert (build["status"], build["completedAt"] is not None) == ("FAILED", True)
    box = await client.running(docker_image="prime/local/app:v1")
    assert (await client.run(box, "echo $A")).stdout == "1\n"


async def test_a_reset_forgets_images(client: Any, prime_platform: LocalPlatform) -> None:
    await finished(client, "FROM debian")
    await begin(client, "other")
    await prime_platform.reset()
    assert await names(client) == []
