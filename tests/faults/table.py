"""What can go wrong with a call, and what must come of it: the specification of the policy.

A call may be sent again when it surely was not processed (`ALWAYS`), or when its row makes a
second time harmless (`WHERE_HARMLESS`): it is safe, or keyed. `test_matrix.py` checks each row of
the table against bytes on a socket, `test_every_row.py` against the decision function for every
`Operation` there is.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from email.utils import formatdate
from typing import Literal

from raw_server import Received, Step, Wire, answer, hang_up, raw, reset, response, silence

from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PaymentRequiredError,
    QuotaExceededError,
    RateLimitError,
    Sent,
    ServerError,
    TimeoutPhase,
    UnauthorizedError,
    ValidationError,
)

__all__ = ["FAULTS", "OPEN_OUTCOME", "PATIENCE", "Fault", "Safety", "Sends"]

Safety = Literal["safe", "keyed", "unsafe"]

# The clients of the matrix wait so many seconds in all when the platform asks them to. It is a
# fifth of a second away from every sum of waits in the table, for machines that are busy.
PATIENCE = 1.3


@dataclass(frozen=True)
class Sends:
    """How many times a call is sent while a fault lasts, by the safety of its row."""

    safe: range
    keyed: range
    unsafe: range

    def of(self, safety: Safety) -> range:
        return {"safe": self.safe, "keyed": self.keyed, "unsafe": self.unsafe}[safety]


def always(least: int, most: int | None = None) -> Sends:
    times = range(least, (most or least) + 1)
    return Sends(times, times, times)


ONCE = always(1)
ALWAYS = always(3)
WHERE_HARMLESS = Sends(safe=range(3, 4), keyed=range(3, 4), unsafe=range(1, 2))

# What the error of an open outcome says about trying again.
OPEN_OUTCOME: dict[Safety, str] = {
    "safe": "it is safe to try again",
    "keyed": "the platform may have done it: try again with the same idempotency key",
    "unsafe": "the platform may have done it: check before you send it again",
}


@dataclass(frozen=True)
class Fault:
    """One way to fail.

    Attributes:
        name: in words.
        sends: how often the call is sent while the fault lasts. Where that is more than once,
            the call succeeds when the fault strikes only once.
        error: class of the error that is raised in the end.
        says: what the error's text tells to do, besides `OPEN_OUTCOME`.
        step: what the server does with a request.
        strikes: where: at the look-up of the name, at the port, in the TLS handshake, at the
            request's first byte, or in place of the answer.
        may_have_acted: whether the caller can't know that the platform did nothing.
        sent: of a connection's error.
        phase: of a timeout.
        status: of an answer.
        retry_after: least and most seconds that the answer asked to wait.
        problems: of a 422.
        until_deadline: whether it takes all the time of the call.
        followed: whether a read finds its answer elsewhere.
    """

    name: str
    sends: Sends
    error: type[APIError]
    says: str = ""
    step: Step | None = None
    strikes: Literal["name", "port", "handshake", "request", "answer"] = "answer"
    may_have_acted: bool = False
    sent: Sent | None = None
    phase: TimeoutPhase | None = None
    status: int | None = None
    retry_after: tuple[float, float] | None = None
    problems: tuple[tuple[str, str], ...] = ()
    until_deadline: bool = False
    followed: bool = False


# Steps of the server that only the table needs.

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
HUNDRED_BYTES = HEAD + b"Content-Length: 100\r\n\r\n"
PAUSE = 0.02


async def trickled_body(wire: Wire, _: Received) -> None:
    await wire.send(HUNDRED_BYTES)
    for _number in range(99):
        await wire.send(b"\0")
        await asyncio.sleep(PAUSE)


async def bad_chunk_further_on(wire: Wire, _: Received) -> None:
    await wire.send(CHUNKED + b"1\r\n{\r\n")
    await asyncio.sleep(PAUSE)  # in a packet of its own, when the head has been read
    await wire.send(b"XYZ\r\n}\r\n")
    await wire.reader.read()  # the connection stays


async def reset_within_the_body(wire: Wire, _: Received) -> None:
    await wire.send(HUNDRED_BYTES + b"{")
    await asyncio.sleep(PAUSE)
    wire.reset()


async def redirect_to_another_host(wire: Wire, request: Received) -> None:
    port = request.headers["host"].rpartition(":")[2]
    location = f"http://localhost:{port}/elsewhere"
    await wire.send(response(307, b"", {"Location": location}))


def date_from_now(seconds: float) -> Step:
    async def step(wire: Wire, request: Received) -> None:
        # Dates have whole seconds: this one is up to a second later.
        date = formatdate(math.ceil(time.time() + seconds), usegmt=True)
        await answer(429, {"detail": "slow down"}, Retry_After=date)(wire, request)

    return step


# Groups of rows that differ in little.


def lost(name: str, step: Step, error: type[APIError], sent: Sent | None = None) -> Fault:
    """The answer is lost: the platform may have done what was asked."""
    return Fault(name, WHERE_HARMLESS, error, step=step, may_have_acted=True, sent=sent)


def late(name: str, step: Step) -> Fault:
    """The answer does not come in time, so that none is left for another attempt."""
    return Fault(
        name,
        ONCE,
        APITimeoutError,
        says="pass a larger timeout",
        step=step,
        may_have_acted=True,
        sent="unknown",
        phase="total",
        until_deadline=True,
    )


def final(
    status: int,
    error: type[APIError],
    says: str,
    *,
    name: str = "",
    body: object = None,
    problems: tuple[tuple[str, str], ...] = (),
) -> Fault:
    """The platform has answered; asking again changes nothing."""
    step = answer(status, {"detail": "because"} if body is None else body)
    return Fault(
        name or str(status), ONCE, error, says, step=step, status=status, problems=problems
    )


def broken(status: int) -> Fault:
    """The platform, or what stands before it, failed at an unknown point."""
    step = answer(status, b"<html>Sorry</html>")
    return Fault(
        str(status), WHERE_HARMLESS, ServerError, step=step, may_have_acted=True, status=status
    )


def refused(
    value: str | None,
    sends: Sends,
    waits: tuple[float, float] | None,
    *,
    status: Literal[429, 503] = 429,
    step: Step | None = None,
) -> Fault:
    """The platform says that it did nothing, and perhaps when to come again."""
    headers = {} if value is None else {"Retry_After": value}
    return Fault(
        f"{status}, Retry-After: {value}",
        sends,
        RateLimitError if status == 429 else ServerError,
        "asks to wait" if waits else "send fewer calls at once",
        step=step or answer(status, {"detail": "slow down"}, **headers),
        status=status,
        retry_after=waits,
    )


DAY = 86_400.0

FAULTS = [
    # Nothing was sent.
    Fault(
        "DNS failure", ALWAYS, APIConnectionError, "check the base URL", strikes="name", sent="no"
    ),
    Fault("refused", ALWAYS, APIConnectionError, "check the network", strikes="port", sent="no"),
    Fault(
        "reset before send",
        ALWAYS,
        APIConnectionError,
        "check the network",
        strikes="handshake",
        sent="no",
    ),
    # Something was sent, and no answer came, or not all of it.
    Fault(
        "reset before it is read",  # which the client can't tell
        WHERE_HARMLESS,
        APIConnectionError,
        strikes="request",
        may_have_acted=True,
        sent="unknown",
    ),
    lost("reset after commit", reset(), APIConnectionError, sent="unknown"),
    lost("hang-up after commit", hang_up(), APIConnectionError, sent="unknown"),
    lost("reset within the body", reset_within_the_body, APIResponseError),
    late("silence", silence()),
    late("headers then silence", raw(HUNDRED_BYTES, close=False)),
    late("trickle", trickled_body),
    lost("truncated body", raw(HUNDRED_BYTES + b"{"), APIResponseError),
    lost("garbage", raw(b"\x16\x03\x01 garbage\r\n\r\n"), APIResponseError),
    lost("bad chunk", raw(CHUNKED + b"XYZ\r\n{}\r\n", close=False), APIResponseError),
    lost("bad chunk further on", bad_chunk_further_on, APIResponseError),
    # The platform answered.
    final(400, BadRequestError, "correct the request"),
    final(401, UnauthorizedError, "check PRIME_API_KEY"),
    final(402, PaymentRequiredError, "top up the account's balance"),
    final(403, ForbiddenError, "check the key's permissions"),
    final(404, NotFoundError, "check the id"),
    final(409, ConflictError, "look at the object's present state"),
    final(
        422,
        ValidationError,
        "correct the request",
        name="422 with detail",
        body={"detail": [{"loc": ["body", "name"], "msg": "Field required", "type": "missing"}]},
        problems=(("name", "Field required"),),
    ),
    final(
        422,
        ValidationError,
        "correct the request",
        name="422 with errors",
        body={"errors": [{"param": "name", "details": "Field required"}]},
        problems=(("name", "Field required"),),
    ),
    final(
        429,
        QuotaExceededError,
        "ask for a higher limit",
        name="429 of an account limit",
        body={"detail": "Sandbox limit reached"},
    ),
    refused(None, always(2), None),
    refused("soon", always(2), None),
    refused("0", always(5), (0, 0)),
    refused("-3", always(5), (0, 0)),
    refused("0.5", always(3), (0.5, 0.5)),
    refused("1", always(2), (1, 1)),
    refused("a date soon", always(2, 7), (0.1, 1.2), step=date_from_now(0.2)),
    refused("Fri, 15 Jan 2021 08:00:00 GMT", always(5), (0, 0)),
    refused("Fri, 15 Jan 2021 08:00:00 -0000", always(5), (0, 0)),
    refused("Fri, 31 Dec 2999 23:59:59 GMT", ONCE, (DAY, DAY)),
    refused("9999", ONCE, (9999, 9999)),
    broken(500),
    broken(502),
    broken(503),
    broken(504),
    refused("0.5", always(3), (0.5, 0.5), status=503),
    refused("9999", ONCE, (9999, 9999), status=503),
    Fault(
        "redirect to another host",
        ONCE,
        APIResponseError,
        "check the base URL",
        step=redirect_to_another_host,
        status=307,
        followed=True,
    ),
]
