"""Direct reads of small files, and what the failures of every file call mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_local.assumptions import Assumptions
from prime_sandboxes import (
    APITimeoutError,
    AsyncSandboxClient,
    BadRequestError,
    ConflictError,
    NotFoundError,
    SandboxFileNotFoundError,
    SandboxFileTooLargeError,
    SandboxNotRunningError,
    SandboxTimeoutError,
)

if TYPE_CHECKING:
    from conftest import Running, StartPlatform

pytestmark = pytest.mark.timeout(30)

MIB = 1024 * 1024


async def written(client: AsyncSandboxClient, box_id: str, command: str) -> None:
    result = await client.execute_command(box_id, command)
    assert result.exit_code == 0, result


async def test_a_text_is_read_with_its_size_in_bytes(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    await written(either, box.id, "printf 'a,é\\n' > report.csv")
    answer = await either.read_file(box.id, f"{box.disk_mount_path}/report.csv")
    assert (answer.content, answer.size) == ("a,é\n", 5)
    assert answer.offset is None
    assert answer.total_size is None
    assert answer.truncated is None


@pytest.mark.parametrize(
    "name",
    ["with space", "é", "a:b", "100%2f", 'quo"te', "new\nline", "a&path=b", "a+b", "#x", "日本"],
)
async def test_any_name_is_taken_as_it_is(
    client: AsyncSandboxClient, running: Running, name: str
) -> None:
    box = await running(client)
    result = await client.execute_command(box.id, 'printf ok > "$NAME"', env={"NAME": name})
    assert result.exit_code == 0
    assert (await client.read_file(box.id, name)).content == "ok"


async def test_a_missing_file_has_an_error_of_its_own(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    with pytest.raises(SandboxFileNotFoundError, match="'nope': HTTP 404") as caught:
        await either.read_file(box.id, "nope")
    assert isinstance(caught.value, NotFoundError)
    assert caught.value.status_code == 404
    assert caught.value.operation == "read_file"
    assert caught.value.request_id


async def test_ten_mebibytes_are_read_and_a_byte_more_is_refused(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    await written(client, box.id, f"head -c {10 * MIB} /dev/zero | tr '\\0' x > big")
    assert (await client.read_file(box.id, "big")).size == 10 * MIB
    await written(client, box.id, "printf x >> big")
    with pytest.raises(SandboxFileTooLargeError, match="413"):
        await client.read_file(box.id, "big")


async def test_a_window_is_passed_on_where_the_platform_serves_it(
    start_platform: StartPlatform, running: Running
) -> None:
    await start_platform(assumptions=Assumptions(read_window="honoured"))
    async with AsyncSandboxClient() as client:
        box = await running(client)
        await written(client, box.id, "printf 0123456789 > digits")
        middle = await client.read_file(box.id, "digits", offset=2, length=3)
        end = await client.read_file(box.id, "digits", offset=-3)
    assert (middle.content, middle.offset, middle.total_size) == ("234", 2, 10)
    assert middle.truncated
    assert (end.content, end.offset) == ("789", 7)


async def test_a_folder_is_no_file(client: AsyncSandboxClient, running: Running) -> None:
    box = await running(client)
    with pytest.raises(BadRequestError, match="directory"):
        await client.read_file(box.id, box.disk_mount_path)


@pytest.mark.parametrize("path", ["", "a\0b", "dir/", "/", "..", "a/.", "\udcff"])
async def test_an_impossible_path_is_refused_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform, path: str
) -> None:
    with pytest.raises(ValueError, match=r"path|folder"):
        await client.read_file("sbx_1", path)
    assert not platform.ledger()["requests"]


@pytest.mark.parametrize(
    "wrong",
    [{"timeout": 0}, {"timeout": float("nan")}, {"offset": 1.5}, {"offset": True}, {"length": -1}],
)
async def test_a_wrong_argument_is_refused_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform, wrong: dict[str, float]
) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        await client.read_file("sbx_1", "x", **wrong)  # type: ignore[arg-type]
    assert not platform.ledger()["requests"]


async def test_a_lost_answer_is_asked_for_again(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    await written(client, box.id, "printf ok > x")
    platform.add_faults(
        FaultRule("read_file", nth=1, reset="after_commit"),
        FaultRule("read_file", nth=1, truncate=5),
    )
    assert (await client.read_file(box.id, "x")).content == "ok"
    assert platform.ledger()["requests"]["read_file"] == 3


async def test_a_conflict_of_a_running_sandbox_passes(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    await written(client, box.id, "printf ok > x")
    platform.add_faults(FaultRule("read_file", times=2, status=409))
    assert (await client.read_file(box.id, "x")).content == "ok"
    assert platform.ledger()["requests"]["get_sandbox_error_context"] == 2


async def test_a_conflict_that_lasts_is_raised_after_four_attempts(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule("read_file", status=409))
    with pytest.raises(ConflictError):
        await client.read_file(box.id, "x")
    assert platform.ledger()["requests"]["read_file"] == 4


async def test_an_ended_sandbox_says_why_it_ended(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either, timeout_minutes=1)
    await platform.advance(61)
    with pytest.raises(SandboxTimeoutError):
        await either.read_file(box.id, "x")


@pytest.mark.parametrize("answer", ["not_found", "bad_gateway"])
async def test_a_deleted_sandbox_is_not_running_whatever_its_gateway_says(
    start_platform: StartPlatform, running: Running, answer: str
) -> None:
    assume = Assumptions(ended_gateway=answer, deleted_sandbox="missing")  # type: ignore[arg-type]
    platform = await start_platform(assumptions=assume)
    async with AsyncSandboxClient() as client:
        box = await running(client)
        await client.delete(box.id)
        with pytest.raises(SandboxNotRunningError):  # it has no token any more
            await client.read_file(box.id, "x")
        other = await running(client)
        async with AsyncSandboxClient() as elsewhere:
            await elsewhere.delete(other.id)
        with pytest.raises(SandboxNotRunningError, match="SANDBOX_NOT_FOUND"):
            await client.read_file(other.id, "x")
    assert platform.ledger()["requests"]["read_file"] == 1


async def test_a_paused_sandbox_is_not_running(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.pause(box.id)
    with pytest.raises(SandboxNotRunningError, match="PAUSED"):
        await client.read_file(box.id, "x")


async def test_a_refused_token_is_replaced_once(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    await written(client, box.id, "printf ok > x")
    platform.add_faults(FaultRule("read_file", nth=1, status=401))
    assert (await client.read_file(box.id, "x")).content == "ok"
    assert platform.ledger()["requests"]["read_file"] == 2


async def test_a_read_ends_at_its_timeout(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule("read_file", delay_before=5))
    with pytest.raises(APITimeoutError) as caught:
        await client.read_file(box.id, "x", timeout=0.3)
    assert caught.value.phase == "total"
