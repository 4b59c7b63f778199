"""Requests about images are checked before anything is sent; answers are read as they come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from prime_core.models import encode_request
from prime_sandboxes import (
    BuildImageRequest,
    BuildImageResponse,
    ImageListItem,
    ImageListResponse,
    ImageUpdateItem,
    ImageUpdatePatch,
    ImageUpdateSource,
    PersonalImageOwner,
    PlatformImageOwner,
    TeamImageOwner,
    UpdateImagesRequest,
    UpdateImagesResponse,
)
from prime_sandboxes.image_references import is_docker_hub_reference, split_reference

HUB = "docker" + ".io"
QUAY = ".".join(("quay", "io"))


def wire(request: Any) -> Any:
    return json.loads(encode_request(request))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("ubuntu", True),
        ("ubuntu:22.04", True),
        ("org/app:1", True),
        ("a/b/c", True),
        (f"{HUB}/library/x", True),
        (f"index.{HUB}/x", True),
        (f"registry-1.{HUB}/x", True),
        (f"{QUAY}/org/app:1", False),
        ("localhost/x", False),
        ("host:5000/x", False),
        ("app@sha256:aa/b.c", True),
    ],
)
def test_docker_hub_is_what_names_no_other_host(reference: str, expected: bool) -> None:
    assert is_docker_hub_reference(reference) is expected


def test_a_reference_comes_apart_at_its_tag() -> None:
    assert split_reference("myapp:v1.0.0") == ("myapp", "v1.0.0")
    assert split_reference("prime/acme/myapp:v1") == ("prime/acme/myapp", "v1")
    assert split_reference("myapp", default_tag="latest") == ("myapp", "latest")
    for wrong in ("myapp", "myapp:", ":v1", "my app:v1", "a//b:v1", "../a:v1", "a:-v", "a:b:c", ""):
        with pytest.raises(ValueError, match=r"tag|name"):
            split_reference(wrong)


def test_a_dockerfile_build_travels_in_snake_case() -> None:
    request = BuildImageRequest(image_name="app", image_tag="v1", team_id="t1")
    assert wire(request) == {
        "image_name": "app",
        "image_tag": "v1",
        "dockerfile_path": "Dockerfile",
        "platform": "linux/amd64",
        "team_id": "t1",
    }
    aliased = BuildImageRequest.model_validate(
        {"image_name": "app", "image_tag": "v1", "teamId": "t1"}
    )
    assert aliased == request


def test_docker_hub_sources_become_public_images_of_the_platform() -> None:
    request = BuildImageRequest(source_image="ubuntu:22.04, org/app")
    assert request.source_image == "ubuntu:22.04,org/app"
    assert wire(request)["visibility"] == "PUBLIC"
    assert wire(request)["owner_scope"] == "platform"
    mixed = BuildImageRequest(source_image=f"ubuntu,{QUAY}/org/app:v1", team_id="t1")
    assert (mixed.visibility, mixed.owner_scope) == (None, None)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "image_name and image_tag"),
        ({"image_name": "app"}, "image_name and image_tag"),
        ({"image_name": "a/b", "image_tag": "v1"}, "no slash"),
        ({"image_name": "app", "image_tag": ".v1"}, "tag is 1 to 128"),
        ({"image_name": "app", "image_tag": "v" * 129}, "tag is 1 to 128"),
        ({"image_name": "app", "image_tag": "v1", "platform": "linux/386"}, "platform"),
        ({"image_name": "app", "image_tag": "v1", "tag": "v2"}, "tag"),
        (
            {"image_name": "a", "image_tag": "b", "owner_scope": "platform", "team_id": "t"},
            "excludes team_id",
        ),
        (
            {
                "image_name": "a",
                "image_tag": "b",
                "owner_scope": "platform",
                "visibility": "PRIVATE",
            },
            "PUBLIC",
        ),
        ({"source_image": ""}, "source_image"),
        ({"source_image": "a,,b"}, "source_image"),
        ({"source_image": "a b"}, "source_image"),
        ({"source_image": "ubuntu", "image_name": "x"}, "keeps its name"),
        ({"source_image": "ubuntu", "team_id": "t"}, "excludes team_id"),
        ({"source_image": "ubuntu", "visibility": "PRIVATE"}, "becomes PUBLIC"),
        ({"source_image": f"{QUAY}/a,{QUAY}/b", "image_tag": "x"}, "one source_image only"),
    ],
)
def test_a_build_that_cannot_be_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        BuildImageRequest(**fields)


def test_changes_travel_in_camel_case_with_what_is_set() -> None:
    update = UpdateImagesRequest(
        dry_run=True,
        updates=[
            ImageUpdateItem(
                source=ImageUpdateSource(owner=PersonalImageOwner(), name="app", tag="v1"),
                set=ImageUpdatePatch(owner=TeamImageOwner(team_id="t1")),
            ),
            ImageUpdateItem(
                source=ImageUpdateSource(reference="prime/acme/tool:v2"),
                set=ImageUpdatePatch(tag="v3"),
            ),
        ],
    )
    assert wire(update) == {
        "mode": "explicit",
        "dryRun": True,
        "updates": [
            {
                "source": {"owner": {"type": "personal"}, "name": "app", "tag": "v1"},
                "set": {"owner": {"type": "team", "teamId": "t1"}},
            },
            {"source": {"reference": "prime/acme/tool:v2"}, "set": {"tag": "v3"}},
        ],
    }


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "give reference"),
        ({"name": "a", "tag": "b"}, "give reference"),
        ({"reference": "a:b", "name": "a"}, "reference alone"),
        ({"reference": "a"}, "with its tag"),
        ({"owner": {"type": "personal"}, "name": "a/b", "tag": "v"}, "no slash"),
        ({"owner": {"type": "team"}, "name": "a", "tag": "v"}, "teamId"),
        ({"owner": {"type": "nobody"}, "name": "a", "tag": "v"}, "owner"),
    ],
)
def test_a_source_has_one_form(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        ImageUpdateSource(**fields)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "at least one"),
        ({"tag": "a b"}, "tag is"),
        ({"name": "a:b"}, "name is"),
        ({"owner": {"type": "platform"}, "visibility": "PRIVATE"}, "PUBLIC"),
    ],
)
def test_a_change_changes_something_possible(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        ImageUpdatePatch(**fields)


def test_an_update_holds_1_to_100_changes() -> None:
    item = ImageUpdateItem(
        source=ImageUpdateSource(owner=PlatformImageOwner(), name="library/a", tag="v1"),
        set=ImageUpdatePatch(name="b"),
    )
    for count in (0, 101):
        with pytest.raises(ValidationError, match="updates"):
            UpdateImagesRequest(updates=[item] * count)
    UpdateImagesRequest(updates=[item] * 100)


def test_answers_are_read_with_what_a_newer_server_adds() -> None:
    row = ImageListItem.model_validate(
        {
            "id": "img_1",
            "artifactType": "CONTAINER_IMAGE",
            "imageName": "app",
            "imageTag": "v1",
            "status": "SCANNING",
            "createdAt": "2026-11-20T09:15:00",
            "ownerType": "guild",
            "extra": 1,
        }
    )
    assert (row.artifact_type, row.status, row.owner_type) == (
        "CONTAINER_IMAGE",
        "SCANNING",
        "guild",
    )
    assert row.created_at.tzinfo is not None
    old = ImageListResponse.model_validate({"data": [], "total_count": 3, "offset": 0, "limit": 1})
    assert old.total_count == 3
    answer = UpdateImagesResponse.model_validate(
        {
            "success": True,
            "results": [
                {
                    "source": {"reference": "a:b", "owner": {"type": "personal"}, "new": 1},
                    "success": True,
                    "before": {
                        "owner": {"type": "team", "teamId": "t", "new": 1},
                        "name": "a",
                        "tag": "b",
                        "visibility": "SHARED",
                    },
                    "after": {
                        "owner": {"type": "guild", "guildId": "g"},
                        "name": "a",
                        "tag": "b",
                        "visibility": "PUBLIC",
                    },
                }
            ],
        }
    )
    [result] = answer.results
    assert result.before is not None
    assert result.after is not None
    assert isinstance(result.before.owner, TeamImageOwner)
    assert result.after.owner.type == "guild"


def test_an_upload_url_is_not_printed() -> None:
    begun = BuildImageResponse.model_validate(
        {"build_id": "b", "upload_url": "http://h/x?sig=hidden", "fullImagePath": "a:b"}
    )
    assert "hidden" not in repr(begun)
