"""Sync calls of one side in one process: `python -m bench.calling ours|httpx URL`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from bench.sides import KEY
from bench.workers import Answer, Stopwatch, answer_questions

SANDBOX = "sbx_bench"


@contextlib.contextmanager
def ours(url: str) -> Iterator[Callable[[], object]]:
    from prime_core import APIClient, Config
    from prime_sandboxes import SandboxClient

    with SandboxClient(APIClient(config=Config(KEY, base_url=url))) as client:
        yield lambda: client.get(SANDBOX)


@contextlib.contextmanager
def plain_httpx(url: str) -> Iterator[Callable[[], object]]:
    import httpx

    headers = {"Authorization": f"Bearer {KEY}", "Accept": "application/json"}
    with httpx.Client(base_url=url, headers=headers) as client:
        yield lambda: client.get(f"/api/v1/sandbox/{SANDBOX}").json()


def main(side: str, url: str) -> None:
    with (ours if side == "ours" else plain_httpx)(url) as call:

        def measure(count: int) -> Answer:
            watch = Stopwatch()
            for _ in range(count):
                call()
            return watch.read()

        answer_questions(measure)


if __name__ == "__main__":
    main(*sys.argv[1:])
