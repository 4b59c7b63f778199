"""Maps that are left, dropped, misused or inherited, and files that change under them."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forks import in_child
from maps import answering, asked, contents, expected, request, requests
from raw_server import RawServer, after

from prime_inference import (
    AsyncInferenceClient,
    ChatRequest,
    CompletionMap,
    CompletionResult,
    InferenceClient,
    ResultFileError,
    StreamStateError,
)

pytestmark = pytest.mark.usefixtures("quick_retries")


async def all_of(results: Any) -> list[CompletionResult]:
    return [result async for result in results]


def drop(held: list[Any]) -> None:
    held.clear()
    gc.collect()


def replace(path: Path) -> None:
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize(
    "change",
    [Path.unlink, replace, lambda path: os.truncate(path, 3), lambda path: path.write_text("mine")],
)
async def test_a_file_that_changes_during_the_run_is_noticed(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = answering
    taken: list[CompletionResult] = []

    async def run() -> None:
        async for result in client.map_completions(requests(50), results=path, limit=1):
            taken.append(result)
            if len(taken) == 3:
                change(path)

    with pytest.raises(ResultFileError, match="during the run"):
        await run()
    lost = [result for result in taken if not result.ok]
    assert 1 <= len(lost) <= 3
    assert all(isinstance(result.error, ResultFileError) for result in lost)
    assert {result.index for result in taken if result.completion} == set(
        map(asked, server.requests)
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
async def test_what_is_no_regular_file_is_refused_unread(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull), Path("/dev/zero"), tmp_path):
        with pytest.raises(ResultFileError, match="regular file"):
            await asyncio.wait_for(all_of(client.map_completions([request(1)], results=path)), 5)
    assert server.requests == []


async def test_a_result_is_not_taken_for_another_teams(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = answering
    for team, resumed in ((None, False), ("team-1", True), ("team-2", False), ("", False)):
        (result,) = await all_of(client.map_completions([request(1)], results=path, team_id=team))
        assert result.resumed is resumed, team


async def test_a_map_that_is_dropped_gives_up_its_calls_and_its_file(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = lambda received: after(30 * (asked(received) > 0), answering(received))
    held = [client.map_completions(requests(8), results=path, limit=4)]
    assert (await held[0].__anext__()).index == 0
    await server.arrived(5)
    with pytest.warns(ResourceWarning, match="dropped before their end"):
        drop(held)
    state = client.client._transport._states.get()
    for _ in range(500):
        await asyncio.sleep(0.01)
        if state.stream._value == state.stream_places:
            break
    assert state.stream._value == state.stream_places
    server.respond = answering
    taken = await all_of(client.map_completions(requests(8), results=path))
    assert contents(taken) == expected(8)
    assert [result.index for result in taken if result.resumed] == [0]


def test_a_sync_map_that_is_dropped_frees_its_file(
    server: RawServer, sync_client: InferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = lambda received: after(30 * (asked(received) > 0), answering(received))
    held = [sync_client.map_completions(requests(3), results=path)]
    assert next(held[0]).index == 0
    with pytest.warns(ResourceWarning):
        drop(held)
    server.respond = answering
    for _ in range(500):
        try:
            taken = list(sync_client.map_completions(requests(3), results=path))
        except ResultFileError:
            time.sleep(0.01)
        else:
            break
    assert [result.index for result in taken if result.resumed] == [0]


async def test_a_map_that_was_left_does_not_seem_to_end(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.respond = answering
    results = client.map_completions(requests(20), limit=2)
    async for _ in results:
        break
    with pytest.raises(StreamStateError, match="left before their end"):
        await all_of(results)
    await asyncio.sleep(0.05)  # what was on its way when it was left arrives
    sent = len(server.requests)
    unstarted = client.map_completions(requests(2))
    await unstarted.aclose()
    with pytest.raises(StreamStateError):
        await unstarted.__anext__()
    await asyncio.sleep(0.05)
    assert len(server.requests) == sent  # nothing is begun behind the error
    whole = client.map_completions(requests(2))
    assert len(await all_of(whole)) == 2
    assert await all_of(whole) == []


async def test_a_client_that_is_closed_ends_its_maps(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.respond = answering
    results = client.map_completions(requests(1000), limit=2)
    await results.__anext__()
    await client.client._transport.aclose()
    with pytest.raises(StreamStateError, match="closed"):
        await all_of(results)
    assert len(server.requests) < 20


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"timeout": 0}, "timeout"),
        ({"team_id": "a b"}, "team"),
        ({"ordered": "no"}, "ordered"),
        ({"progress": 1}, "progress"),
        ({"retry_ambiguous": "false"}, "retry_ambiguous"),
        ({"requests": "text"}, "requests"),
        ({"requests": {**request(1)}}, "requests"),
        ({"requests": 5}, "requests|int"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    server: RawServer, sync_client: InferenceClient, wrong: dict[str, Any], name: str
) -> None:
    given = {"requests": [request(1)], **wrong}
    client = AsyncInferenceClient(client=sync_client.client._async)
    for make in (sync_client.map_completions, client.map_completions):
        with pytest.raises((TypeError, ValueError), match=name):
            make(**given)


def test_a_dict_that_is_used_again_is_sent_as_it_was_when_it_was_pulled(
    server: RawServer, sync_client: InferenceClient
) -> None:
    server.respond = answering

    def mutated() -> Iterator[ChatRequest]:
        message = {"role": "user", "content": ""}
        for number in range(10):
            message["content"] = str(number)
            yield {"model": "m", "messages": [message]}

    assert contents(list(sync_client.map_completions(mutated(), limit=3))) == expected(10)


def test_a_map_is_neither_pickled_nor_copied(sync_client: InferenceClient) -> None:
    results = sync_client.map_completions([])
    for refused in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="results of a map"):
            refused(results)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_map_of_before_the_fork_is_refused_in_the_child(
    server: RawServer, sync_client: InferenceClient, tmp_path: Path
) -> None:
    server.respond = answering
    path = tmp_path / "results.jsonl"

    def leave(results: CompletionMap) -> None:
        with results:
            pass

    with sync_client.map_completions(requests(9), limit=2, results=path) as results:
        assert next(results).ok
        assert in_child(lambda: next(results)) == "StreamStateError"
        assert in_child(lambda: leave(results)) == "None"
        assert len(list(results)) == 8
    assert len(path.read_text().splitlines()) == 9
