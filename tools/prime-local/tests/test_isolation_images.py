"""Builds that really run, in the modes that have a root to build in."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from building import BUILD, Files, ended, finished, link, packed, started

from prime_local import PlatformProcess
from prime_local.sandboxes.isolation.base import WantedMode

if TYPE_CHECKING:
    from conftest import PlatformOfMode, RawClient

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=["full", "bwrap"])
def platform(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode
) -> Iterator[PlatformProcess]:
    server = platform_of_mode(request.param)
    yield server
    server.reset()


@pytest.fixture
def full(platform_of_mode: PlatformOfMode) -> Iterator[PlatformProcess]:
    server = platform_of_mode("full")
    yield server
    server.reset()


@pytest.fixture
async def client(platform: PlatformProcess, helpers: Any) -> AsyncIterator[RawClient]:
    async with helpers.client_of(platform) as client:
        yield client


@pytest.fixture
async def full_client(full: PlatformProcess, helpers: Any) -> AsyncIterator[RawClient]:
    async with helpers.client_of(full) as client:
        yield client


async def built(
    client: RawClient, dockerfile: str, files: Files | None = None, name: str = "app"
) -> str:
    """Build an image that must succeed; returns its reference."""
    build = await finished(client, dockerfile, files, name)
    assert build["status"] == "COMPLETED", build["errorMessage"]
    reference: str = build["artifacts"][0]["fullImagePath"]
    return reference


async def failed(client: RawClient, dockerfile: str, files: Files | None = None) -> str:
    """Build an image that must fail; returns the end of its log."""
    build = await finished(client, dockerfile, files)
    assert build["status"] == "FAILED", build
    log: str = build["errorMessage"]
    return log


async def output(client: RawClient, reference: str, script: str) -> str:
    """Run a script in a new sandbox of an image; returns what it prints."""
    box = await client.running(docker_image=reference)
    result = await client.run(box, script)
    assert result.exit_code == 0, result.stderr
    return result.stdout


async def test_a_build_runs_its_instructions(client: RawClient) -> None:
    dockerfile = """
# escape is the usual one
from python:3.11-slim AS base
ENV GREETING="hello world" \\
    # in between
    NAME=me
WORKDIR /app
WORKDIR src
COPY main.py ./
COPY data/ data
RUN echo "$GREETING, $NAME" > greeting && \\
    python main.py > answer
RUN ["python", "-c", "open('exec', 'w').write('$NAME')"]
USER root
"""
    files: Files = {"main.py": "print(6 * 7)", "data/a": "1", "data/b/c": "2"}
    reference = await built(client, dockerfile, files)
    script = "pwd; cat greeting answer exec; echo; find data | sort | tr '\\n' ' '; echo $NAME"
    assert await output(client, reference, script) == (
        "/app/src\nhello world, me\n42\n$NAME\ndata data/a data/b data/b/c me\n"
    )


async def test_a_command_that_fails_fails_the_build_with_its_output(client: RawClient) -> None:
    log = await failed(client, "FROM debian\nRUN echo first; echo second >&2; exit 3\nRUN false")
    assert "first" in log
    assert "second" in log
    assert log.endswith("exit code 3")
    assert "RUN false" not in log
    assert "no such program: nothing" in await failed(client, 'FROM debian\nRUN ["nothing"]')


async def test_files_are_copied_as_docker_copies_them(client: RawClient) -> None:
    dockerfile = """FROM debian
COPY a.txt /w/renamed
COPY a.txt b.txt /w/both/
COPY *.txt .hidden /w/glob/
COPY tree /w/tree
COPY tree/sub /w/tree/
COPY ["with blank", "/w/json form"]
COPY --chmod=700 a.txt /w/mode
COPY link /w/followed
"""
    files: Files = {
        "a.txt": "A",
        "b.txt": "B",
        ".hidden": "H",
        "with blank": "W",
        "tree/x": "X",
        "tree/sub/y": "Y",
        "link": link("link", "b.txt"),
        "tree/inner": link("tree/inner", "x"),
    }
    reference = await built(client, dockerfile, files)
    found = await output(client, reference, "cd /w; find . -type f -o -type l | sort")
    assert found.split("\n")[:-1] == [
        "./both/a.txt",
        "./both/b.txt",
        "./followed",
        "./glob/.hidden",
        "./glob/a.txt",
        "./glob/b.txt",
        "./json form",
        "./mode",
        "./renamed",
        "./tree/inner",
        "./tree/sub/y",
        "./tree/x",
        "./tree/y",
    ]
    script = (
        "cd /w; cat renamed followed tree/inner 'json form'; stat -c %a mode; readlink tree/inner"
    )
    assert await output(client, reference, script) == "ABXW700\nx\n"


async def test_an_archive_is_taken_apart_by_add_alone(client: RawClient) -> None:
    inner = packed({"x/y": "inside"})
    dockerfile = "FROM debian\nADD a.tar.gz b /w/\nCOPY a.tar.gz /w/whole\n"
    reference = await built(client, dockerfile, {"a.tar.gz": inner, "b": "B"})
    assert await output(client, reference, "cd /w; cat x/y b; wc -c < whole") == (
        f"insideB{len(inner)}\n"
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("COPY gone /w/", "not found in the context"),
        ("COPY ../../etc/hostname /w/", "not found in the context"),
        ("COPY out /w/", "leads out of the context"),
        ("COPY away/passwd /w/", "leads out of the context"),
    ],
)
async def test_nothing_from_outside_of_the_context_is_copied(
    client: RawClient, line: str, complaint: str
) -> None:
    files: Files = {"out": link("out", "/etc/hostname"), "away": link("away", "/etc")}
    assert complaint in await failed(client, f"FROM debian\n{line}\n", files)


async def test_a_copy_through_a_link_stays_in_the_image(client: RawClient, tmp_path: Any) -> None:
    tmp_path.chmod(0o777)
    dockerfile = f"FROM debian\nRUN ln -s {tmp_path} /tmp/way\nCOPY a /tmp/way/\n"
    await finished(client, dockerfile, {"a": "A"})
    assert list(tmp_path.iterdir()) == []


async def test_an_image_starts_from_another_with_its_files(client: RawClient) -> None:
    await built(client, "FROM debian\nWORKDIR /one\nRUN echo 1 > a; echo 2 > b", name="base")
    second = "FROM prime/local/base:v1\nRUN rm b; echo 3 > c\nWORKDIR /two\nENV X=1"
    reference = await built(client, second)
    assert await output(client, reference, "pwd; cd /one; ls; cat a") == "/two\na\nc\n1\n"
    # The one below is as it was.
    assert await output(client, "prime/local/base:v1", "pwd; ls") == "/one\na\nb\n"


async def test_sandboxes_of_an_image_do_not_share_files(client: RawClient) -> None:
    reference = await built(client, "FROM debian\nWORKDIR /app\nRUN echo 1 > a")
    assert await output(client, reference, "echo 2 > a; cat a") == "2\n"
    assert await output(client, reference, "cat a") == "1\n"


async def test_nothing_of_the_context_is_in_the_image(client: RawClient) -> None:
    reference = await built(client, "FROM debian\nRUN ls /.prime-build", {"secret": "x"})
    assert await output(client, reference, "ls -A / | grep -c prime-build || true") == "0\n"


async def test_what_a_command_leaves_running_ends_with_it(client: RawClient) -> None:
    dockerfile = """FROM debian
WORKDIR /app
RUN (sleep 0.5; touch late) & setsid sleep 600 & true
RUN sleep 1; ls > seen; ps ax 2>/dev/null | grep -c '[s]leep 600' >> seen || true
"""
    assert "late" not in await output(client, await built(client, dockerfile), "cat seen")


async def test_a_working_directory_and_variables_can_be_overridden(client: RawClient) -> None:
    reference = await built(client, "FROM debian\nENV A=1 HOME=/tmp\nWORKDIR /app/sub")
    box = await client.running(docker_image=reference)
    assert (await client.run(box, "pwd; echo $A $HOME")).stdout == "/app/sub\n1 /tmp\n"
    other = await client.run(box, "pwd; echo $A", cwd="/tmp", envs={"A": "2"})
    assert other.stdout == "/tmp\n2\n"
    assert (await client.run(box, "pwd", cwd="..")).stdout == "/app\n"


async def test_a_build_has_no_network_and_few_capabilities(
    client: RawClient, platform: PlatformProcess
) -> None:
    dockerfile = """FROM debian
WORKDIR /app
RUN grep -c : /proc/net/dev > report
RUN grep CapEff /proc/self/status >> report
RUN ls -A /home >> report
"""
    report = await output(client, await built(client, dockerfile), "cat report")
    # Owners, accounts and modes of files: nothing that reaches beyond the image.
    expected = {"full": "00000000000000db", "bwrap": "0000000000000000"}[platform.isolation]
    assert report.split() == ["1", "CapEff:", expected]


async def test_a_build_that_takes_too_long_is_ended(
    client: RawClient, platform: PlatformProcess
) -> None:
    build_id = await started(client, "FROM debian\nWORKDIR /app\nRUN echo waiting; sleep 600")
    await asyncio.sleep(0.5)
    answer = await client.call("POST", "/_local/clock/advance", {"seconds": 1801})
    assert answer.status == 200, answer.body
    build = await ended(client, build_id)
    assert build["status"] == "FAILED"
    assert "waiting" in build["errorMessage"]
    assert "more than 1800 s" in build["errorMessage"]


async def test_a_deleted_image_ends_its_build(client: RawClient) -> None:
    build_id = await started(client, "FROM debian\nRUN sleep 600")
    await asyncio.sleep(0.3)
    assert (await client.call("DELETE", "/api/v1/images/app/v1")).status == 200
    assert (await client.call("GET", f"{BUILD}/{build_id}")).status == 404


async def test_lack_of_memory_fails_the_build(full_client: RawClient) -> None:
    hungry = "python -c \"x = b'x' * (3 * 1024 ** 3)\""
    log = await failed(full_client, f"FROM python\nRUN {hungry}")
    assert "OOM_KILLED" in log or "exit code 137" in log


async def test_the_whole_root_can_be_built_on_in_full(full_client: RawClient) -> None:
    dockerfile = """FROM debian
COPY tool /usr/local/bin/tool
RUN chmod +x /usr/local/bin/tool && echo new > /etc/motd && rm -rf /usr/share/doc
COPY a /single
"""
    files: Files = {"tool": "#!/bin/sh\necho tool works\n", "a": "A"}
    reference = await built(full_client, dockerfile, files)
    script = "tool; cat /etc/motd /single; ls /usr/share/doc 2>&1 | tail -c 26"
    expected = "tool works\nnew\nANo such file or directory\n"
    assert await output(full_client, reference, script) == expected


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("COPY a /usr/local/x", "/usr is read-only"),
        ("WORKDIR /var/lib/x", "/var is read-only"),
        ("WORKDIR /proc/x", "/proc is read-only"),
        ("COPY a /single", "no files"),
    ],
)
async def test_what_bwrap_cannot_write_to_fails_the_build(
    platform_of_mode: PlatformOfMode, helpers: Any, line: str, complaint: str
) -> None:
    async with helpers.client_of(platform_of_mode("bwrap")) as client:
        assert complaint in await failed(client, f"FROM debian\n{line}\n", {"a": "A"})
        assert "Read-only" in await failed(client, "FROM debian\nRUN touch /usr/x")
        assert (
            await output(
                client, await built(client, "FROM debian\nCOPY . /d", {"a": "A"}), "cat /d/a"
            )
            == "A"
        )


async def test_accounts_of_an_image_are_real_in_full(full_client: RawClient) -> None:
    dockerfile = """FROM debian
RUN useradd --create-home --uid 1234 app && groupadd --gid 77 team && usermod -aG team app
COPY --chown=app:team a /opt/app/
COPY a /srv/roots
RUN mkdir /data && chown app /data
USER app
WORKDIR /data
RUN id -un > who; id -G >> who; echo $HOME $USER >> who; touch /srv/x 2>> who || true
RUN grep -E 'CapEff|CapBnd' /proc/self/status >> who
"""
    reference = await built(full_client, dockerfile, {"a": "A"})
    script = "cat who; pwd; id -u; stat -c '%U:%G' /opt/app/a /data/who /srv/roots"
    box = await full_client.running(docker_image=reference)
    result = await full_client.run(box, script)
    assert result.stdout == (
        "app\n1234 77\n/home/app app\ntouch: cannot touch '/srv/x': Permission denied\n"
        "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
        "/data\n1234\napp:team\napp:app\nroot:root\n"
    )
    # The caller may still say who runs a command.
    assert (await full_client.run(box, "id -u", user="root")).stdout == "0\n"
    assert (await full_client.run(box, "id -u; id -g", user="1234:77")).stdout == "1234\n77\n"
    nobody = await full_client.run(box, "id", user="somebody")
    assert nobody.error_code == "invalid_argument"


async def test_an_account_that_is_not_there_fails_the_build(full_client: RawClient) -> None:
    log = await failed(full_client, "FROM debian\nUSER somebody\nRUN ls")
    assert "unknown user 'somebody'" in log
    copied = "FROM debian\nCOPY --chown=somebody a /a"
    assert "no such account" in await failed(full_client, copied, {"a": "A"})


@pytest.mark.parametrize("trap", ["mkfifo", "ln -s /proc/self/maps", "mkdir"])
async def test_a_list_of_accounts_that_is_a_trap_is_no_list(
    full_client: RawClient, trap: str
) -> None:
    box = await full_client.running()
    result = await full_client.run(box, f"rm -rf /etc/passwd; {trap} /etc/passwd; echo set")
    assert result.stdout == "set\n"
    trapped = await full_client.run(box, "id", user="nobody", timeout_ms=5000)
    assert trapped.error_code == "invalid_argument"


async def test_only_builds_may_change_owners(full_client: RawClient) -> None:
    reference = await built(full_client, "FROM debian\nRUN touch /a && chown 12:34 /a")
    box = await full_client.running(docker_image=reference)
    script = "stat -c %u:%g /a; chown 0 /a; su nobody -c id; echo x >> /a"
    result = await full_client.run(box, script)
    assert result.stdout == "12:34\n"
    assert result.stderr.count("not permitted") + result.stderr.count("denied") >= 2


async def test_another_account_than_root_is_refused_by_bwrap(
    platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    async with helpers.client_of(platform_of_mode("bwrap")) as client:
        assert "no account but root" in await failed(client, "FROM debian\nUSER nobody")


@pytest.mark.parametrize("mode", ["full", "bwrap"])
async def test_files_of_images_last_as_long_as_their_images(
    platform_of_mode: PlatformOfMode, helpers: Any, tmp_path: Path, mode: WantedMode
) -> None:
    platform_of_mode(mode)  # skips where the mode does not work

    def left() -> list[int]:
        folders = [tmp_path / "images", *tmp_path.glob("*/builds"), *tmp_path.glob("*/sandboxes")]
        return [len(os.listdir(folder)) for folder in folders]

    options = ["--no-limits", f"--data-dir={tmp_path}"]
    with PlatformProcess(options, isolation=mode) as platform:
        async with helpers.client_of(platform) as client:
            await built(client, "FROM debian\nWORKDIR /app\nRUN echo 1 > a")
            await built(client, "FROM debian\nWORKDIR /app\nRUN echo 2 > a")
            await failed(client, "FROM debian\nWORKDIR /app\nRUN exit 1")
            assert left() == [1, 0, 0]
    assert sorted(os.listdir(tmp_path))[0] == "images"
    with PlatformProcess(options, isolation=mode) as platform:
        async with helpers.client_of(platform) as client:
            assert await output(client, "prime/local/app:v1", "cat a") == "2\n"
            answer = await client.call("DELETE", "/api/v1/images/app/v1")
            assert answer.status == 200
            deadline = time.monotonic() + 5
            while left()[0]:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)


async def test_an_image_of_another_isolation_cannot_be_used(
    platform_of_mode: PlatformOfMode, helpers: Any, tmp_path: Path
) -> None:
    for mode in ("full", "bwrap"):
        platform_of_mode(mode)
    options = ["--no-limits", f"--data-dir={tmp_path}"]
    with PlatformProcess(options, isolation="full") as platform:
        async with helpers.client_of(platform) as client:
            await built(client, "FROM debian\nRUN touch /usr/x")
            await built(client, "FROM debian\nENV A=1", name="light")
    with PlatformProcess(options, isolation="bwrap") as platform:
        async with helpers.client_of(platform) as client:
            created = await client.create(docker_image="prime/local/app:v1")
            ended_box = await client.until(created, "ERROR")
            assert ended_box["errorType"] == "IMAGE_PULL_FAILED"
            assert "no such image" in await failed(client, "FROM prime/local/app:v1\nENV B=1")
            assert await output(client, "prime/local/light:v1", "echo $A") == "1\n"
