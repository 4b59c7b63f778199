"""Uploading traces in one process: `python -m bench.trace_work SIDE URL`.

The vendor's side runs in an environment that holds nothing of ours, so that imports stand where
they are needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import statistics
import sys
from collections.abc import Iterable
from typing import Any

from bench.trace_records import trace_records
from bench.workers import Answer, Stopwatch, answer_questions, memory_kib

BATCH = 30 * 1024 * 1024
WITHOUT_FAST = ("orjson", "isal", "isal.isal_zlib")


async def ours(url: str, records: Iterable[dict[str, Any]]) -> Answer:
    """Our client, and how late its event loop was meanwhile."""
    from bench.platform_work import lags
    from prime_traces import AsyncTracesClient

    size = 0

    def progress(done: int, _: int | None) -> None:
        nonlocal size
        size = done

    async with AsyncTracesClient(api_key="bench", base_url=url) as client, lags() as late:
        receipts = await client.upload_records(records, progress=progress)
    return {
        "batches": len(receipts),
        "bytes": size,
        "p99_ms": statistics.quantiles(late, n=100)[98] * 1000,
        "max_ms": max(late) * 1000,
    }


def parts(records: Iterable[dict[str, Any]]) -> Answer:
    """What no client can do without: each record as JSON, each batch's digest and its gzip."""
    from prime_traces.compression import compressed
    from prime_traces.records import encode_record

    size = batches = 0

    def finish(lines: list[bytes]) -> None:
        nonlocal size, batches
        data = b"".join(lines)
        hashlib.sha256(data).hexdigest()
        compressed(data)
        size += len(data)
        batches += 1

    lines: list[bytes] = []
    waiting = 0
    for record in records:
        line = encode_record(record)
        if waiting + len(line) > BATCH:
            finish(lines)
            lines, waiting = [], 0
        lines.append(line)
        waiting += len(line)
    finish(lines)
    return {"batches": batches, "bytes": size}


def vendors(url: str, records: Iterable[dict[str, Any]]) -> Answer:
    from prime_traces import TracesClient

    sizes: list[int] = []
    with TracesClient(api_key="bench", base_url=url) as client:
        receipts = client.upload_records(
            records, on_batch=lambda batch, _: sizes.append(batch.size)
        )
    return {"batches": len(receipts), "bytes": sum(sizes)}


def upload(side: str, url: str, total: int) -> Answer:
    """Uploads some traces by one side."""
    records = trace_records(total)
    if side == "parts":
        return parts(records)
    if side == "vendor":
        return vendors(url, records)
    return asyncio.run(ours(url, records))


def main(side: str, url: str, fast: str) -> None:
    if fast == "plain":
        for name in WITHOUT_FAST:
            sys.modules[name] = None  # type: ignore[assignment]  # what importing it refuses

    def measure(total: int) -> Answer:
        before, _ = memory_kib()
        watch = Stopwatch()
        result = upload(side, url, total)
        return {**result, **watch.read(), "growth_kib": memory_kib()[1] - before}

    upload(side, url, BATCH // 8)  # so that all is imported and the connection open
    answer_questions(measure)


if __name__ == "__main__":
    main(*sys.argv[1:])
