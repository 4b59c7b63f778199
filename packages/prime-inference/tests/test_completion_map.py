"""Many completions at once: limits, order, failures, and a file to go on from."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from maps import answering, asked, contents, expected, request, requests
from programs import end, line, start
from raw_server import RawServer, Received, Step, after, answer

from prime_inference import (
    AsyncInferenceClient,
    ChatCompletionRequest,
    ChatRequest,
    CompletionResult,
    InferenceClient,
    ModelNotFoundError,
    PaymentRequiredError,
    ResultFileError,
    ServerError,
    UnauthorizedError,
)

pytestmark = pytest.mark.usefixtures("quick_retries")


class Gauge:
    """Answers after a while, and notes how many requests were there at once."""

    def __init__(self, *, most: int = 1000, pause: float = 0.01) -> None:
        self.now = self.peak = self.refused = 0
        self._most = most
        self._pause = pause

    def __call__(self, received: Received) -> Step:
        async def step(wire: Any, _: Received) -> None:
            if self.now >= self._most:
                self.refused += 1
                await answer(429, {}, Retry_After="0.02")(wire, received)
                return
            self.now += 1
            self.peak = max(self.peak, self.now)
            await asyncio.sleep(self._pause)
            self.now -= 1
            await answering(received)(wire, received)

        return step


async def test_every_request_has_its_result(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.respond = answering
    given = requests(50)
    results = client.map_completions([*given[:49], ChatCompletionRequest.model_validate(given[49])])
    taken = [result async for result in results]
    assert contents(taken) == expected(50)
    assert all(result.ok and not result.resumed for result in taken)
    assert {result.index: result.request for result in taken}[7] is given[7]
    assert {result.completion and result.completion.inference_id for result in taken} == {
        f"inf-{number}" for number in range(50)
    }
    assert all(received.json["usage"] == {"include": True} for received in server.requests)
    totals = results.totals
    assert (totals.completed, totals.failed, totals.resumed) == (50, 0, 0)
    assert (totals.prompt_tokens, totals.completion_tokens) == (100, 150)
    assert totals.cost == Decimal("5.0")  # the sum of fifty floats of 0.1 is another


async def test_results_in_the_order_of_the_requests(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.respond = lambda received: after(0.03 * (asked(received) % 3), answering(received))
    taken = [r.index async for r in client.map_completions(requests(20), ordered=True, limit=10)]
    assert taken == list(range(20))
    loose = [r.index async for r in client.map_completions(requests(20), limit=10)]
    assert sorted(loose) == taken
    assert loose != taken


async def test_no_more_than_the_limit_are_under_way(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.respond = gauge = Gauge()
    async for _ in client.map_completions(requests(40), limit=7):
        pass
    assert gauge.peak == 7


async def test_requests_may_be_endless(server: RawServer, client: AsyncInferenceClient) -> None:
    server.respond = answering
    pulled = 0

    async def endless() -> AsyncIterator[ChatRequest]:
        nonlocal pulled
        while True:
            pulled += 1
            yield request(pulled)

    async with client.map_completions(endless(), limit=4) as results:
        for _ in range(10):
            await results.__anext__()
    assert pulled <= 10 + 2 * 4 + 1


async def test_it_finds_the_pace_of_a_platform_that_takes_fewer(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.respond = gauge = Gauge(most=8, pause=0.02)
    results = client.map_completions(requests(150), limit=64)
    taken = [result async for result in results]
    assert contents(taken) == expected(150)
    assert gauge.peak == 8
    assert results.concurrency < 32
    assert gauge.refused < 300
    assert client.client.throttled == gauge.refused


async def test_failures_are_values(server: RawServer, client: AsyncInferenceClient) -> None:
    def respond(received: Received) -> Step:
        number = asked(received)
        if number == 3:
            return answer(404, {"error": {"message": "Model not found"}})
        return answer(502) if number == 4 else answering(received)

    server.respond = respond
    wrong: Any = {"model": "m", "messages": []}
    streamed = ChatCompletionRequest(**request(0), stream=True)
    given = [*requests(6), wrong, streamed]
    results = client.map_completions(given, ordered=True)
    taken = [result async for result in results]
    assert [type(result.error) for result in taken[3:5]] == [ModelNotFoundError, ServerError]
    assert "messages" in str(taken[6].error)
    assert "stream" in str(taken[7].error)
    assert [result.ok for result in taken] == [True] * 3 + [False] * 2 + [True] + [False] * 2
    assert (results.totals.completed, results.totals.failed) == (4, 4)
    assert Counter(map(asked, server.requests)) == Counter(range(6))  # none of them twice


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (answer(401, {}), UnauthorizedError),
        (answer(402, {"error": {"code": "insufficient_funds"}}), PaymentRequiredError),
    ],
)
async def test_a_failure_that_none_escapes_ends_it_when_all_is_handed_out(
    server: RawServer, client: AsyncInferenceClient, step: Step, kind: type[Exception]
) -> None:
    def respond(received: Received) -> Step:
        return step if asked(received) == 5 else after(0.05, answering(received))

    server.respond = respond
    results = client.map_completions(requests(1000), limit=10)
    taken: list[CompletionResult] = []
    with pytest.raises(kind):
        await _all_into(taken, results)
    sent = {asked(received) for received in server.requests}
    assert len(sent) <= 10
    assert set(contents(taken)) == sent - {5}  # what was paid for is not lost


async def _all_into(taken: list[CompletionResult], results: Any) -> None:
    async for result in results:
        taken.append(result)


async def test_who_leaves_early_gives_up_what_is_under_way(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.respond = lambda received: after(0 if asked(received) == 0 else 30, answering(received))
    began = time.monotonic()
    async for result in client.map_completions(requests(100), limit=10):
        assert result.index == 0
        break
    for _ in range(100):
        await asyncio.sleep(0.01)
        state = client.client._transport._states.get()
        if state.stream._value == state.stream_places:
            break
    assert state.stream._value == state.stream_places
    assert time.monotonic() - began < 5


async def test_a_limit_below_one_is_refused(client: AsyncInferenceClient) -> None:
    for limit in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="limit"):
            client.map_completions([], limit=limit)  # type: ignore[arg-type]


async def run_map(
    client: AsyncInferenceClient, path: Path, given: list[ChatRequest], **options: Any
) -> list[CompletionResult]:
    return [result async for result in client.map_completions(given, results=path, **options)]


async def test_a_run_goes_on_where_the_last_one_ended(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = lambda received: answer(500) if asked(received) == 2 else answering(received)
    first = await run_map(client, path, requests(5))
    assert [result.index for result in first if not result.ok] == [2]
    assert len(path.read_text().splitlines()) == 4
    server.requests.clear()
    server.respond = answering
    results = client.map_completions(requests(7), results=path, ordered=True)
    taken = [result async for result in results]
    assert contents(taken) == expected(7)
    assert [result.resumed for result in taken] == [True, True, False, True, True, False, False]
    assert taken[0].completion is not None
    assert taken[0].completion.inference_id == "inf-0"
    assert sorted(map(asked, server.requests)) == [2, 5, 6]
    totals = results.totals
    assert (totals.completed, totals.resumed, totals.cost) == (7, 4, Decimal("0.7"))
    assert totals.resumed_cost == Decimal("0.4")


async def test_a_request_that_differs_is_another(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = answering
    await run_map(client, path, requests(3))
    server.requests.clear()
    changed: list[Any] = [request(1), {**request(1), "seed": 1}, dict(reversed(request(2).items()))]
    taken = await run_map(client, path, changed, ordered=True)
    assert [result.resumed for result in taken] == [False, False, True]
    assert len(server.requests) == 2


@pytest.mark.parametrize("torn", [b'{"index": 1, "dig', b"{", b'{"index": 1}'])
async def test_a_torn_last_line_is_no_result(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path, torn: bytes
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = answering
    await run_map(client, path, requests(1))
    with path.open("ab") as file:
        file.write(torn)
    taken = await run_map(client, path, requests(3), ordered=True)
    assert [result.resumed for result in taken] == [True, False, False]
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert sorted(line["index"] for line in lines) == [0, 1, 2]


async def test_a_file_that_holds_something_else_is_refused_and_kept(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"index": 0, "note": "mine"}\n')
    with pytest.raises(ResultFileError, match="line 1, is no result"):
        await run_map(client, path, requests(1))
    assert path.read_text() == '{"index": 0, "note": "mine"}\n'
    with pytest.raises(ResultFileError, match="can't be used"):
        await run_map(client, tmp_path / "no" / "folder", requests(1))
    assert server.requests == []


async def test_two_runs_do_not_share_a_file(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = answering
    async with client.map_completions(requests(2), results=path) as results:
        await results.__anext__()
        with pytest.raises(ResultFileError, match="another run"):
            await run_map(client, path, requests(2))
    assert len(await run_map(client, path, requests(2))) == 2


PROGRAM = """
    import asyncio, resource, signal, sys
    from prime_inference import (
        AsyncAPIClient, AsyncInferenceClient, Config, PrimeError, ResultFileError
    )

    async def main(url, path, size):
        if size != "0":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
        requests = [
            {"model": "m", "messages": [{"role": "user", "content": str(number)}]}
            for number in range(60)
        ]
        client = AsyncInferenceClient(client=AsyncAPIClient(config=Config("k", inference_url=url)))
        try:
            async for result in client.map_completions(requests, results=path, limit=4):
                kind = type(result.error).__name__
                print(result.index, kind, result.completion is not None, flush=True)
        except ResultFileError as error:
            print("end", error, flush=True)

    asyncio.run(main(*sys.argv[1:]))
"""


def start_run(server: RawServer, path: Path, size: int = 0) -> subprocess.Popen[str]:
    return start(PROGRAM, f"{server.url}/api/v1", str(path), str(size))


def test_a_full_disk_ends_it_and_what_was_paid_for_is_handed_out(
    server: RawServer, tmp_path: Path
) -> None:
    server.respond = answering
    ended = end(start_run(server, tmp_path / "results.jsonl", size=1000))
    *told, last = ended.out.splitlines()
    assert last.startswith("end")
    assert "File too large" in last
    handed_out = {int(line.split()[0]) for line in told if line.endswith("True")}
    assert handed_out == {asked(received) for received in server.requests}
    # Where several are written at once, none of them may have found room.
    assert sum("NoneType" in line for line in told) <= 10
    assert len(handed_out) < 30


async def test_a_run_that_is_killed_has_lost_no_result_that_it_told_of(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    server.respond = lambda received: after(0.01, answering(received))
    program = start_run(server, path)
    lines = [await asyncio.to_thread(line, program) for _ in range(20)]
    program.kill()
    rest = end(program).out
    lines += rest[: rest.rfind("\n") + 1].splitlines()
    told = {int(text.split()[0]) for text in lines}
    before = Counter(asked(received) for received in server.requests)
    assert 20 <= len(before) < 60
    taken = await run_map(client, path, requests(60), team_id="")  # as the program
    assert contents(taken) == expected(60)
    assert told <= {result.index for result in taken if result.resumed}
    paid = Counter(asked(received) for received in server.requests)
    twice = {number for number, times in paid.items() if times > 1}
    assert twice <= set(before) - told  # only what was under way when it was killed
    assert len(twice) <= 8


def test_the_sync_client_maps_too(
    server: RawServer, sync_client: InferenceClient, tmp_path: Path
) -> None:
    server.respond = answering

    def given() -> Iterator[ChatRequest]:
        yield from requests(20)

    path = tmp_path / "results.jsonl"
    with sync_client.map_completions(given(), limit=5, ordered=True, results=path) as results:
        taken = list(results)
    assert contents(taken) == expected(20)
    assert results.totals.cost == Decimal("2.0")
    for result in sync_client.map_completions(requests(20), results=path):
        assert result.resumed
        break
