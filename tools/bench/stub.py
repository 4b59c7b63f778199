"""A server that answers creates like the platform, at next to no cost: `python -m bench.stub`.

Arguments: the seconds to wait before a create is answered, and, for TLS on a second port, the
files of a certificate and its key. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from typing import Protocol

from bench.workers import raise_descriptor_limit

ID_LENGTH = 20

# As documented for a create, token included; the id is put in its place.
CREATED = json.dumps(
    {
        "id": "{id}",
        "name": "bench",
        "dockerImage": "python:3.11-slim",
        "startCommand": None,
        "cpuCores": 1,
        "memoryGB": 1,
        "diskSizeGB": 5,
        "diskMountPath": "/workspace",
        "gpuCount": 0,
        "gpuType": None,
        "vm": True,
        "networkAllowlist": None,
        "networkDenylist": None,
        "status": "PENDING",
        "timeoutMinutes": 60,
        "idleTimeoutMinutes": None,
        "terminationReason": None,
        "environmentVars": None,
        "secrets": None,
        "advancedConfigs": None,
        "labels": ["bench"],
        "createdAt": "2030-01-01T12:00:00.000Z",
        "updatedAt": "2030-01-01T12:00:00.000Z",
        "startedAt": None,
        "terminatedAt": None,
        "exitCode": None,
        "errorType": None,
        "errorMessage": None,
        "userId": "usr_k55or44m68anvqlwdd3y",
        "teamId": None,
        "region": None,
        "pendingImageBuildId": None,
        "gatewayAuth": {
            "gateway_url": "http://127.0.0.1:9/gateway",
            "user_ns": "ns-k55or44m68anvqlwdd3y",
            "job_id": "job-31swpqr54kyn2xnmg6h7",
            "token": "gwt_m6x9egga1ensf1sepevrh0nr20qj1m1z7jfjixma",
            "expires_at": "2030-01-01T12:30:00.000Z",
        },
    }
).encode()
BEFORE_ID, AFTER_ID = CREATED.split(b"{id}")
LENGTH = len(BEFORE_ID) + ID_LENGTH + len(AFTER_ID)
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nServer: bench\r\n\r\n" % LENGTH
)


class Stub:
    """What has been asked so far, and the answers.

    Args:
        delay: seconds before a create is answered; anything else is answered at once.
    """

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._made = 0
        self.requests = 0
        self.connections = 0
        self.last = b""

    def take(self, request: bytes, transport: asyncio.Transport) -> None:
        """Answers a request: any path is a sandbox."""
        self.requests += 1
        self.last = request
        self._made += 1
        answer = b"%b%b%0*d%b" % (HEAD, BEFORE_ID, ID_LENGTH, self._made, AFTER_ID)
        if request.startswith(b"POST"):
            asyncio.get_running_loop().call_later(self._delay, transport.write, answer)
        else:
            transport.write(answer)

    def report(self) -> dict[str, object]:
        """Counts since the last report, and the last request as it came."""
        report: dict[str, object] = {
            "requests": self.requests,
            "connections": self.connections,
            "last": self.last.decode("latin-1"),
        }
        self.requests = self.connections = 0
        return report


class Answering(Protocol):
    """What a connection hands its requests to."""

    connections: int

    def take(self, request: bytes, transport: asyncio.Transport) -> None: ...


class Connection(asyncio.Protocol):
    """One client's connection; requests come one after the other."""

    def __init__(self, stub: Answering) -> None:
        self._stub = stub
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._stub.connections += 1

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if blank and len(body) >= content_length(head):
            self._stub.take(self._buffer, self._transport)
            self._buffer = b""


def content_length(head: bytes) -> int:
    """The length of a request's body, by its head."""
    _, name, value = head.lower().partition(b"\r\ncontent-length:")
    return int(value.partition(b"\r\n")[0]) if name else 0


async def serve(delay: float, certificate: list[str]) -> None:
    """Serves until standard input ends; each line of it asks for a report."""
    loop = asyncio.get_running_loop()
    stub = Stub(delay)
    ended = asyncio.Event()
    addresses = {"url": await listen(stub, None)}
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        addresses["tls_url"] = await listen(stub, context)

    def asked() -> None:
        if sys.stdin.readline():
            print(json.dumps({**addresses, **stub.report()}), flush=True)
        else:
            ended.set()

    loop.add_reader(sys.stdin, asked)
    await ended.wait()


async def listen(stub: Stub, context: ssl.SSLContext | None) -> str:
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(stub), "127.0.0.1", 0, ssl=context, backlog=4096
    )
    host, port = server.sockets[0].getsockname()
    return f"{'http' if context is None else 'https'}://{host}:{port}"


if __name__ == "__main__":
    raise_descriptor_limit()
    asyncio.run(serve(float(sys.argv[1]), sys.argv[2:]))
