"""One cell of the fault matrix: a call, a fault, a client, and a server of the cell's own."""

from __future__ import annotations

import contextvars
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from certificates import Authority
from raw_server import RawServer, Received, Step, answer
from table import PATIENCE, Fault, Safety

from prime_core.config import Config
from prime_core.connect import encode_envelope
from prime_sandboxes import (
    AsyncSandboxClient,
    CreateSandboxRequest,
    SandboxClient,
)
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.operations import COMMAND_SESSION_START, CREATE_SANDBOX, GET_SANDBOX

__all__ = ["ROWS", "Cell", "FirstFailure", "Names", "Row", "sound_answer"]

KEY = "pit_c0ffee-0123456789-secret"
TOKEN = "gwt_5ca1ab1e-of-the-gateway"
VALUE = "hunter2-of-the-sandbox"
SECRETS = (KEY, TOKEN, VALUE)
TEAM = "team-of-the-matrix"
SANDBOX_ID = "sbx-1"
FOR_EVER = 10**9

# Seconds: for a call that a fault lets end by itself, and for one that it does not.
TIMEOUT, DEADLINE = 10.0, 1.0

SANDBOX = {
    "id": SANDBOX_ID,
    "name": "box",
    "dockerImage": "python:3.11-slim",
    "cpuCores": 1,
    "memoryGB": 1,
    "diskSizeGB": 5,
    "diskMountPath": "/workspace",
    "gpuCount": 0,
    "status": "RUNNING",
    "timeoutMinutes": 60,
    "createdAt": "2027-01-15T08:00:00Z",
    "updatedAt": "2027-01-15T08:00:00Z",
}


@dataclass(frozen=True)
class Row:
    """A call of the matrix.

    Attributes:
        operation: what its errors name.
        safety: of its row.
        target: the path that it is sent to.
        reply: what the platform answers.
        make: makes the call with the async client.
        make_sync: makes the call with the sync client.
        gateway: whether it goes to a gateway, with a token that a 401 renews.
    """

    operation: str
    safety: Safety
    target: str
    reply: Step
    make: Callable[[AsyncSandboxClient, Cell], Awaitable[object]]
    make_sync: Callable[[SandboxClient, Cell], object]
    gateway: bool = False


def a_sandbox(cell: Cell) -> CreateSandboxRequest:
    """A create; its key is the caller's where it fails in the end, so that nothing is undone."""
    key = None if cell.succeeds else "the-callers-key"
    secrets = {"PASSWORD": VALUE}
    return CreateSandboxRequest(
        name="box", docker_image="python", idempotency_key=key, secrets=secrets
    )


def stream_of_a_command() -> Step:
    ended = pb.CommandSessionEvent(end=pb.CommandSessionEvent.EndEvent(exit_code=0, exited=True))
    event = encode_envelope(pb.StartResponse(event=ended).SerializeToString())
    trailer = b"\x02\x00\x00\x00\x02{}"
    return answer(200, event + trailer, Content_Type="application/connect+proto")


COMMAND_PATH = COMMAND_SESSION_START.path.format(user_ns="ns", job_id="job")

ROWS = [
    Row(
        GET_SANDBOX.id,
        "safe",
        f"/api/v1/sandbox/{SANDBOX_ID}",
        answer(200, SANDBOX),
        lambda client, _: client.get(SANDBOX_ID),
        lambda client, _: client.get(SANDBOX_ID),
    ),
    Row(
        CREATE_SANDBOX.id,
        "keyed",
        CREATE_SANDBOX.path,
        answer(200, SANDBOX),
        lambda client, cell: client.create(a_sandbox(cell)),
        lambda client, cell: client.create(a_sandbox(cell)),
    ),
    Row(
        "POST /pods",
        "unsafe",
        "/api/v1/pods",
        answer(200, {"id": "pod-1"}),
        lambda client, _: client.client.post("/pods", {"name": "pod"}),
        lambda client, _: client.client.post("/pods", {"name": "pod"}),
    ),
    Row(
        COMMAND_SESSION_START.id,
        "unsafe",
        COMMAND_PATH,
        stream_of_a_command(),
        lambda client, cell: client.execute_command(SANDBOX_ID, "true", timeout=cell.timeout),
        lambda client, cell: client.execute_command(SANDBOX_ID, "true", timeout=cell.timeout),
        gateway=True,
    ),
]


def sound_answer(request: Received, gateway_url: str) -> Step:
    """What the platform answers when nothing is wrong."""
    if request.target.endswith("/auth"):
        token = {"token": TOKEN, "user_ns": "ns", "job_id": "job"}
        life = {"expires_at": "2099-01-01T00:00:00Z", "gateway_url": gateway_url}
        return answer(200, {**token, **life})
    if request.target.endswith("/error-context"):
        return answer(200, {"status": "RUNNING"})
    replies = {row.target: row.reply for row in ROWS}
    return replies.get(request.target, answer())


class Names:
    """Stands in for the system's look-up of names: each of its names fails so many times."""

    def __init__(self) -> None:
        self._look_up = socket.getaddrinfo
        self._numbers = itertools.count(1)
        self._failures: dict[str, int] = {}

    def failing(self, times: int) -> str:
        """A new name for 127.0.0.1, which is unknown at first."""
        name = f"cell-{next(self._numbers)}.invalid"
        self._failures[name] = times
        return name

    def getaddrinfo(self, host: str, *others: Any, **options: Any) -> list[Any]:
        if host not in self._failures:
            return self._look_up(host, *others, **options)
        if self._failures[host] > 0:
            self._failures[host] -= 1
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._look_up("127.0.0.1", *others, **options)


class FirstFailure(logging.Handler):
    """Calls what a cell has asked for when its first attempt fails: only the log tells of it."""

    then: contextvars.ContextVar[Callable[[], None] | None] = contextvars.ContextVar(
        "then", default=None
    )

    def emit(self, record: logging.LogRecord) -> None:
        then = self.then.get()
        if then is not None and "-> APIConnectionError in" in record.getMessage():
            self.then.set(None)
            then()


@dataclass
class Cell:
    """A call that meets a fault, once or for ever, through the async or the sync client."""

    row: Row
    fault: Fault
    lasting: bool
    side: str
    names: Names
    authority: Authority
    servers: list[RawServer] = field(default_factory=list)

    def __str__(self) -> str:
        how_long = "for ever" if self.lasting else "once"
        return f"{self.fault.name} {how_long} / {self.row.operation} / {self.side}"

    @property
    def times(self) -> int:
        """How many requests the fault strikes."""
        return FOR_EVER if self.lasting else 1

    @property
    def timeout(self) -> float:
        return DEADLINE if self.fault.until_deadline else TIMEOUT

    @property
    def renews(self) -> bool:
        """Whether a new token is fetched, and the call made once more with it."""
        return self.row.gateway and self.fault.status == 401

    @property
    def succeeds(self) -> bool:
        if self.fault.followed and self.row.safety == "safe":
            return True
        again = self.fault.sends.of(self.row.safety).start > 1 or self.renews
        return again and not self.lasting

    @contextmanager
    def serving(self) -> Iterator[Config]:
        """Runs the cell's servers; the configuration is that of its client."""
        with ExitStack() as stack:
            faulty = stack.enter_context(RawServer())
            sound = stack.enter_context(RawServer()) if self.row.gateway else faulty
            self.servers = [faulty, sound]
            if self.fault.strikes == "handshake":
                self.servers.append(stack.enter_context(RawServer(tls=self.authority.server)))
            left = self.times if self.fault.strikes == "answer" else 0

            def respond(request: Received) -> Step:
                nonlocal left
                if request.target == self.row.target and left:
                    left -= 1
                    assert self.fault.step is not None
                    return self.fault.step
                if request.target == "/elsewhere":
                    return self.row.reply
                return sound_answer(request, url)

            for server in self.servers:
                server.respond = respond
            with self._struck(faulty):
                url = self._address(faulty)
                base_url = sound.url if self.row.gateway else url
                yield Config(KEY, team_id=TEAM, base_url=base_url)

    def _address(self, server: RawServer) -> str:
        """Where the call is sent to."""
        if self.fault.strikes == "name":
            return f"http://{self.names.failing(self.times)}:{server.port}"
        scheme = "https" if self.fault.strikes == "handshake" else "http"
        return f"{scheme}://127.0.0.1:{server.port}"

    @contextmanager
    def _struck(self, server: RawServer) -> Iterator[None]:
        """Prepares what strikes before a request is read, and its end after the first time."""
        recover: Callable[[], None] | None = None
        with socket.socket() as holder:
            if self.fault.strikes == "port":
                server.down()
                # A port that is taken, and not listened on: no other cell gets it meanwhile.
                holder.bind(("127.0.0.1", 0))
                server.port = holder.getsockname()[1]

                def recover() -> None:
                    holder.close()
                    server.up()

            elif self.fault.strikes == "handshake":
                server.drop = self.times
                secure = self.servers[-1]

                def recover() -> None:
                    server.down()
                    secure.down()
                    secure.port = server.port
                    secure.up()

            elif self.fault.strikes == "request":
                server.drop = self.times
            token = FirstFailure.then.set(None if self.lasting else recover)
            yield
            FirstFailure.then.reset(token)

    def settings(self) -> dict[str, Any]:
        return {
            "timeout": self.timeout,
            "max_throttle_wait": PATIENCE,
            "ssl_context": self.authority.client,
        }

    def seen(self) -> list[Received]:
        servers = dict.fromkeys(self.servers)  # one of them may stand for two
        requests = [request for server in servers for request in server.requests]
        return [request for request in requests if request.target == self.row.target]
