"""Copies between training volumes and buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from s3_client import client_of, own_bucket
from volume_calls import call, made, refusal, route

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient


async def test_a_bucket_is_imported_and_exported(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(volume_time=10)
    await made(client)
    bucket, keys = own_bucket(platform), platform.add_bucket("mine")
    for key in ("data/a", "data/b/c", "datax"):
        await bucket("put_object", Key=key, Body=key.encode(), Metadata={"mtime": "1"})
    asked = {
        "direction": "import",
        "path": "in",
        "url": "s3://mine/data",
        "endpointUrl": keys["endpoint"],
        "credentials": {
            "accessKeyId": keys["access_key_id"],
            "secretAccessKey": keys["secret_access_key"],
        },
    }
    created = await call(client, "POST", "/research/transfers", asked)
    assert (created["status"], "credentials" in created) == ("queued", False)
    path = f"/research/transfers/{created['id']}"
    assert (await refusal(client, "POST", "/research/transfer", {"mode": "put", "path": "d/"}))[
        0
    ] == 409
    await platform.advance(15)
    running = await call(client, "GET", path)
    assert (running["status"], running["progress"]["percentage"]) == ("running", 50)
    await platform.advance(6)
    ended = await call(client, "GET", path)
    assert (ended["status"], ended["progress"], ended["errorMessage"]) == ("succeeded", None, None)
    get = await route(client, "get", "in/")
    volume = client_of(get)
    assert await volume.keys(Prefix=get["prefix"] + "in/") == [
        get["prefix"] + "in/a",
        get["prefix"] + "in/b/c",
    ]
    await bucket("delete_object", Key="data/a")
    assert await volume.read(get["prefix"] + "in/a") == b"data/a"
    export = {**asked, "direction": "export", "url": "s3://mine/out/"}
    second = await call(client, "POST", "/research/transfers", export)
    await platform.advance(20)
    assert await bucket.keys(Prefix="out/") == ["out/a", "out/b/c"]
    listed = (await call(client, "GET", "/research/transfers"))["transfers"]
    assert [each["id"] for each in listed] == [second["id"], created["id"]]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"credentials": {"accessKeyId": "AK", "secretAccessKey": "x"}}, "InvalidAccessKeyId"),
        ({"endpointUrl": "https://storage.example"}, "reaches only buckets of its own"),
        ({"url": "s3://other/data"}, "AccessDenied"),
        ({}, None),
    ],
)
async def test_a_copy_fails_or_is_cancelled(
    open_platform: OpenPlatform, change: dict[str, Any], text: str | None
) -> None:
    platform, client = await open_platform(volume_time=10)
    await made(client)
    keys = platform.add_bucket("mine")
    asked = {
        "direction": "import",
        "path": "",
        "url": "s3://mine/data",
        "endpointUrl": keys["endpoint"],
        "credentials": {
            "accessKeyId": keys["access_key_id"],
            "secretAccessKey": keys["secret_access_key"],
        },
        **change,
    }
    created = await call(client, "POST", "/research/transfers", asked)
    path = f"/research/transfers/{created['id']}"
    if text is None:
        await call(client, "DELETE", path)
        await call(client, "DELETE", path)
    await platform.advance(20)
    ended = await call(client, "GET", path)
    assert ended["status"] == ("cancelled" if text is None else "failed")
    assert (text or "None") in str(ended["errorMessage"])
    await route(client, "put", "d/")


async def test_wrong_copies_are_refused(client: RawClient) -> None:
    await made(client)
    keys = {"accessKeyId": "AK", "secretAccessKey": "x"}
    body = {"direction": "import", "path": "runs/a", "url": "s3://mine/a", "credentials": keys}
    for change in ({}, {"path": ".."}, {"path": "a", "url": "https://mine/a"}):
        assert (await refusal(client, "POST", "/research/transfers", {**body, **change}))[0] == 400
    assert (await refusal(client, "GET", "/research/transfers/nope"))[0] == 404
