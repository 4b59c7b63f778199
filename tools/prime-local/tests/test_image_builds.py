"""Builds of images over HTTP: states, the upload store, and what cannot be built."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from building import BUILD, IMAGES, OCTETS, begin, ended, finished, link, packed, put, start

from prime_local import LocalPlatform

pytestmark = pytest.mark.timeout(60)


async def test_a_build_goes_from_pending_to_completed(client: Any) -> None:
    begun = await begin(client)
    assert (begun["fullImagePath"], begun["expires_in"]) == ("prime/local/app:v1", 600)
    assert begun["buildIds"] == [begun["build_id"]]
    path = f"{BUILD}/{begun['build_id']}"
    assert (await client.call("GET", path)).body["status"] == "PENDING"
    assert await put(client, begun["upload_url"], packed({"Dockerfile": "FROM debian\n"})) == 200
    assert (await client.call("GET", path)).body["status"] == "UPLOADING"
    started = await start(client, begun)
    assert (started.status, started.body["status"]) == (200, "BUILDING")
    build = await ended(client, begun["build_id"])
    assert (build["status"], build["errorMessage"]) == ("COMPLETED", None)
    assert build["artifacts"][0]["status"] == "COMPLETED"


async def test_a_sandbox_of_an_image_has_its_variables(client: Any) -> None:
    await finished(
        client, 'FROM python:3.11-slim\nENV A=1 B="two $A" C=${A:-x}\nENV D=$A-${X:-y}\n'
    )
    box = await client.running(docker_image="prime/local/app:v1", environment_vars={"C": "own"})
    result = await client.run(box, 'echo "$A,$B,$C,$D"; python -c "print(7)"')
    # Of one line, none sees the others.
    assert result.stdout == "1,two ,own,1-y\n7\n"


async def test_a_path_of_an_image_finds_python_in_every_mode(client: Any) -> None:
    await finished(client, "FROM python:3.11\nENV PATH=/opt/mine:$PATH\n")
    box = await client.running(docker_image="prime/local/app:v1")
    result = await client.run(box, 'echo "$PATH"; python -c "print(7)"')
    assert result.stdout.startswith("/opt/mine:")
    assert result.stdout.endswith("\n7\n")


async def test_a_start_needs_an_upload_and_happens_once(client: Any) -> None:
    begun = await begin(client)
    assert (await start(client, begun)).status == 409
    await put(client, begun["upload_url"], packed({"Dockerfile": "FROM debian"}))
    assert (await start(client, begun)).status == 200
    assert (await start(client, begun)).status == 409
    assert await put(client, begun["upload_url"], b"late") == 403
    assert (await client.call("POST", f"{BUILD}/bld_no/start", {})).status == 404
    assert (await client.call("GET", f"{BUILD}/bld_no")).status == 404


async def test_an_upload_takes_only_what_its_url_was_signed_for(
    client: Any, prime_platform: LocalPlatform
) -> None:
    begun = await begin(client)
    url = begun["upload_url"]
    assert url.startswith(prime_platform.url + "/store/")
    assert await put(client, url, b"x", {"Content-Type": "text/plain"}) == 403
    assert await put(client, url, b"x", {**OCTETS, **client.key}) == 403
    assert await put(client, url, b"x", {**OCTETS, "X-Prime-Team-ID": "team_1"}) == 403
    assert await put(client, url[:-1] + "0z", b"x") == 403
    assert await put(client, url, b"x") == 200
    await prime_platform.advance(601)
    assert await put(client, url, b"x") == 403
    build = await ended(client, begun["build_id"])
    assert build["status"] == "CANCELLED"


async def test_a_build_lasts_as_long_as_the_clock_says(open_platform: Any) -> None:
    platform, client = await open_platform(image_build_time=300)
    begun = await begin(client)
    await put(client, begun["upload_url"], packed({"Dockerfile": "FROM debian"}))
    await start(client, begun)
    await asyncio.sleep(0.1)
    build = (await client.call("GET", f"{BUILD}/{begun['build_id']}")).body
    assert build["status"] == "BUILDING"
    assert [row["status"] for row in (await client.call("GET", IMAGES)).body["data"]] == [
        "BUILDING"
    ]
    await platform.advance(301)
    assert (await ended(client, begun["build_id"]))["status"] == "COMPLETED"


@pytest.mark.parametrize(
    ("dockerfile", "complaint"),
    [
        ("FROM debian\nCMD ls", "line 2: CMD is not simulated"),
        ("# x\nARG A\nFROM debian", "line 2: ARG is not simulated"),
        ("FROM debian\nLABEL a=b", "LABEL"),
        ("FROM debian\nFROM python", "build in stages"),
        ("FROM scratch", "scratch"),
        ("RUN ls", "no FROM"),
        ("", "no FROM"),
        ("FROM nobody/nothing:v9", "there is no such image"),
        ("FROM prime/local/nothing:v9", "there is no such image"),
        ("FROM debian\nRUN --mount=type=cache ls", "--mount"),
        ("FROM debian\nRUN <<EOF\nls\nEOF", "here-documents"),
        ("FROM debian\nCOPY --from=base a b", "--from"),
        ("FROM debian\nCOPY --chown=app a b", "no account but root"),
        ("FROM debian\nADD https://example.com/x /x", "no network"),
        ("FROM debian\nCOPY a b c", "ends in a slash"),
        ("FROM debian\nENV A", "NAME=VALUE"),
        ('FROM debian\nENV A="x', "not closed"),
        ("FROM debian\nUSER nobody", "no account but root"),
        ("FROM debian\nRUN ls", "--isolation full or bwrap"),
        ("FROM debian\nWORKDIR /app", "--isolation full or bwrap"),
    ],
)
async def test_what_cannot_be_built_fails_and_says_why(
    client: Any, dockerfile: str, complaint: str
) -> None:
    build = await finished(client, dockerfile)
    assert build["status"] == "FAILED"
    assert complaint in build["errorMessage"]
    assert "ERROR" in build["errorMessage"]


@pytest.mark.parametrize(
    ("context", "complaint"),
    [
        (b"no tar", "no gzip tar"),
        (gzip.compress(b"no tar" * 200), "no gzip tar"),
        (packed({"Dockerfile": "FROM debian"})[:-30], "no gzip tar"),
        (packed({"../out": "x"}), "leads out"),
        (packed({"/out": "x"}), "leads out"),
        (packed({"a/../../out": "x"}), "leads out"),
        (packed({"a": link("a", "..")}), "no Dockerfile"),
        (packed({}), "no Dockerfile"),
        (packed({"Dockerfile": link("Dockerfile", "/etc/hostname")}), "is no Dockerfile"),
    ],
    ids=["bytes", "gzip", "cut", "parent", "absolute", "detour", "link", "empty", "link as file"],
)
async def test_a_context_that_is_none_fails_the_build(
    client: Any, context: bytes, complaint: str
) -> None:
    begun = await begin(client)
    await put(client, begun["upload_url"], context)
    await start(client, begun)
    build = await ended(client, begun["build_id"])
    assert build["status"] == "FAILED"
    assert complaint in build["errorMessage"]


async def test_nothing_is_written_through_a_link_of_a_context(client: Any, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.addfile(link("way", str(tmp_path)))
        member = tarfile.TarInfo("way/out")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    begun = await begin(client)
    await put(client, begun["upload_url"], buffer.getvalue())
    await start(client, begun)
    build = await ended(client, begun["build_id"])
    assert "through a link" in build["errorMessage"]
    assert os.listdir(tmp_path) == []
