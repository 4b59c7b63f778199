"""A server that takes uploads of traces and forgets them: `python -m bench.trace_stub`.

Each line of standard input asks for the address and the counts since the last one; with its end
the server ends.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

KEY = re.compile(rb"\r\nidempotency-key: *sha256:([0-9a-f]{64})", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


class Counts:
    """What has come since the last report."""

    def __init__(self) -> None:
        self.uploads = 0
        self.body_bytes = 0


class Taking(asyncio.Protocol):
    """A client's connection; its requests come one after the other, and their bodies go."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._head = b""
        self._left = 0
        self._answer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._left:
            head, blank, data = (self._head + data).partition(b"\r\n\r\n")
            if not blank:
                self._head = head
                return
            self._head = b""
            self._begin(head)
        self._left -= len(data)
        if self._left <= 0:
            self._left = 0
            self._transport.write(self._answer)

    def _begin(self, head: bytes) -> None:
        length, key = LENGTH.search(head), KEY.search(head)
        assert length is not None
        assert key is not None
        self._left = int(length[1])
        self._counts.uploads += 1
        self._counts.body_bytes += self._left
        receipt = json.dumps({"upload_id": key[1].decode(), "status": "committed"}).encode()
        self._answer = (
            b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(receipt), receipt)
        )


async def serve() -> None:
    loop = asyncio.get_running_loop()
    counts = Counts()
    ended = asyncio.Event()
    server = await loop.create_server(lambda: Taking(counts), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()

    def asked() -> None:
        if sys.stdin.readline():
            report = {"url": f"http://{host}:{port}", **vars(counts)}
            print(json.dumps(report), flush=True)
            counts.uploads = counts.body_bytes = 0
        else:
            ended.set()

    loop.add_reader(sys.stdin, asked)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve())
