"""Pages of sandboxes, and all of them while they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from prime_local import LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncAPIClient,
    AsyncSandboxClient,
    CreateSandboxRequest,
    ForbiddenError,
)

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
async def fast(platform: LocalPlatform) -> AsyncIterator[AsyncSandboxClient]:
    """A client that creates without pacing."""
    connections = AsyncAPIClient(limits={"sandbox-create": None})
    async with connections, AsyncSandboxClient(client=connections) as client:
        yield client


async def make(client: AsyncSandboxClient, count: int, **fields: object) -> list[str]:
    request = CreateSandboxRequest.model_validate(
        {"name": "box", "docker_image": "python:3.11-slim", **fields}
    )
    return [box.id for box in await asyncio.gather(*(client.create(request) for _ in range(count)))]


async def test_a_page_says_where_it_stands(either: AsyncSandboxClient) -> None:
    ids = await make(either, 5)
    pages = [await either.list(page=number, per_page=2) for number in (1, 2, 3)]
    assert [len(page.sandboxes) for page in pages] == [2, 2, 1]
    assert [page.has_next for page in pages] == [True, True, False]
    assert {(page.total, page.per_page) for page in pages} == {(5, 2)}
    assert [page.page for page in pages] == [1, 2, 3]
    assert {box.id for page in pages for box in page.sandboxes} == set(ids)


async def test_a_list_is_filtered_by_state_and_by_all_of_its_labels(
    either: AsyncSandboxClient,
) -> None:
    await make(either, 1)
    (red,) = await make(either, 1, labels=["red"])
    (both,) = await make(either, 1, labels=["red", "blue & green"])
    await either.delete(red)

    async def listed(**filters: object) -> set[str]:
        answer = await either.list(**filters)  # type: ignore[arg-type]
        return {box.id for box in answer.sandboxes}

    assert await listed(labels=["red"]) == {red, both}
    assert await listed(labels=["red", "blue & green"]) == {both}
    assert await listed(status="TERMINATED") == {red}
    assert await listed(labels=["red"], exclude_terminated=True) == {both}
    assert await listed(labels=["red"], exclude_terminated=False) == {red, both}
    assert await listed(team_id="team-of-nobody") == set()


async def test_sandboxes_of_another_user_need_rights(either: AsyncSandboxClient) -> None:
    with pytest.raises(ForbiddenError, match=r"^HTTP 403: Team admin required"):
        await either.list(user_id="usr_other")


@pytest.mark.parametrize(
    "wrong", [{"page": 0}, {"per_page": 0}, {"per_page": 1001}, {"labels": "red"}]
)
async def test_a_page_that_cannot_be_is_refused_before_sending(
    either: AsyncSandboxClient, platform: LocalPlatform, wrong: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"page|labels"):
        await either.list(**wrong)  # type: ignore[arg-type]
    assert platform.ledger()["requests"] == {}


async def test_iter_reads_every_page(
    either: AsyncSandboxClient, fast: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    ids = await make(fast, 230, labels=["mine"])
    await make(fast, 3)
    listed = [box.id async for box in either.iter(labels=["mine"])]
    assert len(listed) == 230
    assert set(listed) == set(ids)
    assert platform.ledger()["requests"]["list_sandboxes"] == 3


async def test_iter_of_nothing_ends_at_once(either: AsyncSandboxClient) -> None:
    assert [box async for box in either.iter()] == []


async def test_iter_yields_nothing_twice_while_sandboxes_appear(fast: AsyncSandboxClient) -> None:
    ids = await make(fast, 150)
    listed = []
    async for box in fast.iter():
        listed.append(box.id)
        if len(listed) == 1:  # the newest come first, so that all others move down
            await make(fast, 7)
    assert len(listed) == len(set(listed))
    assert set(ids) <= set(listed)


async def test_iter_misses_nothing_while_sandboxes_vanish(fast: AsyncSandboxClient) -> None:
    ids = await make(fast, 250)
    listed: list[str] = []
    async for box in fast.iter(exclude_terminated=True):
        listed.append(box.id)
        if len(listed) == 60:
            await fast.bulk_delete(listed[:60])
        if len(listed) == 170:
            await fast.bulk_delete(listed[60:170])
    assert len(listed) == len(set(listed))
    assert set(listed) == set(ids)


async def test_a_loop_that_deletes_what_it_reads_leaves_nothing(
    fast: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    await make(fast, 320)
    async for box in fast.iter(exclude_terminated=True):
        await fast.delete(box.id)
    assert platform.ledger()["sandboxes"]["live"] == 0
    assert platform.ledger()["requests"]["delete_sandbox"] == 320


async def test_iter_can_be_left_early(
    either: AsyncSandboxClient, fast: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    await make(fast, 120)
    async for _ in either.iter():
        break
    assert platform.ledger()["requests"]["list_sandboxes"] == 1


async def test_iter_raises_what_a_page_fails_with(either: AsyncSandboxClient) -> None:
    with pytest.raises(APIError) as caught:
        _ = [box async for box in either.iter(user_id="usr_other")]
    assert caught.value.operation == "list_sandboxes"
