"""Streams of completions, beside a loop of aiohttp's that reads the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from bench.plan import Plan
from bench.reports import Row, ratio
from bench.workers import Answer, Worker

__all__ = ["stream_rows"]

SIDES = ("ours", "raw")
ROUNDS = 5  # other work on the machine moves one run by a tenth


def stream_rows(plan: Plan) -> Iterator[Row]:
    """CPU a chunk of many streams at once; what they lose is an error."""
    streams, chunks = plan.size(2000, 20), plan.size(200, 20)
    # A chunk a packet, as models write them: slow enough for both sides to keep up.
    yield row(plan, "a chunk a packet", streams, chunks, plan.size(150, 10) / 1000, 1.3)
    # As fast as it goes, most of the time goes into typed chunks in place of bare dicts.
    yield row(plan, "in bulk", plan.size(200, 20), chunks, 0, None)


def row(plan: Plan, how: str, streams: int, chunks: int, pause: float, target: float | None) -> Row:
    """Both sides take turns."""
    runs: dict[str, list[Answer]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        stub = stack.enter_context(
            Worker("stream_stub", str(chunks), str(pause), core=plan.servers)
        )
        url = stub.ask()["url"]
        workers = {
            side: stack.enter_context(Worker("streaming", side, url, core=plan.measured))
            for side in SIDES
        }
        for worker in workers.values():  # what happens once a process is no stream's cost
            worker.ask(streams=5)
        for _ in range(plan.size(ROUNDS, 1)):
            for side, worker in workers.items():
                runs[side].append(worker.ask(streams=streams))
    expected = streams * (chunks + 2)  # with the last one and the totals
    if any(run["chunks"] != expected for side in SIDES for run in runs[side]):
        raise RuntimeError(f"streams lost chunks: {runs} instead of {expected}")
    ours, raw = ([run["cpu"] / expected * 1e6 for run in runs[side]] for side in SIDES)
    details = {"streams": streams, "chunks a stream": chunks, "µs a chunk": min(ours)}
    return Row(f"streams: CPU a chunk, {how}", ratio(ours, raw), "x raw aiohttp", target, details)
