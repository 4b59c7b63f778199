"""Creates without a key that a gateway answers for, and those that no mark tells."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from raw_server import Gate, RawServer, Step, answer, reset
from rows import Thing
from transports import Connect
from unkeyed_creates import Marked, Platform, owed

from prime_core import creation
from prime_core.creation import owe_later
from prime_core.errors import APIConnectionError, APIError, ServerError
from prime_core.reaper import reaper

pytestmark = pytest.mark.usefixtures("quick_retries")


async def test_a_503_of_a_gateway_that_had_passed_the_create_on_makes_no_second(
    server: RawServer, connect: Connect
) -> None:
    refused = answer(503, {}, Retry_After="0.01")
    platform, transport = Platform(server, refused), connect()
    marked = Marked(transport, ["t1"])
    assert (await marked.create()).id == "t1"
    assert (platform.made, marked.looks, marked.discarded) == (1, 1, [])


async def test_a_503_that_made_nothing_is_followed_by_another_attempt(
    server: RawServer, connect: Connect
) -> None:
    refused = answer(503, {}, Retry_After="0.01")
    platform, transport = Platform(server, refused), connect()
    marked = Marked(transport, [])
    assert (await marked.create()).id == "t2"
    assert platform.made == 2
    await transport.aclose()


@pytest.mark.usefixtures("quick_looks")
async def test_it_is_not_sent_again_when_nobody_can_tell_whether_it_was_done(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server, answer(503, {}, Retry_After="0.01")), connect()
    marked = Marked(transport, APIConnectionError("no list"))
    with pytest.raises(ServerError, match="A thing is looked for"):
        await marked.create()
    assert platform.made == 1
    await transport.aclose()


async def test_a_503_is_remembered_over_a_rate_limit_and_a_refusal(
    server: RawServer, connect: Connect
) -> None:
    steps = (answer(503, {}, Retry_After="0.01"), answer(429, {}, Retry_After="0.01"))
    platform, transport = Platform(server, *steps), connect()
    marked = Marked(transport, [], ["t1"])
    assert (await marked.create()).id == "t1"
    assert platform.made == 2
    taken = answer(409, {"detail": "there is one"})
    platform.first = [answer(503, {}, Retry_After="0.01"), taken]
    marked.lists = [[], ["t3"]]
    assert (await marked.create()).id == "t3"
    await transport.aclose()


async def test_what_a_gateway_has_made_meanwhile_is_discarded_beside_the_second(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server, answer(503, {}, Retry_After="0.01")), connect()
    marked = Marked(transport, [], ["t2", "t1"])
    assert (await marked.create()).id == "t2"
    await reaper.drain(transport)
    assert (platform.made, marked.discarded) == (2, ["t1"])


async def test_what_can_t_be_discarded_at_once_is_owed(server: RawServer, connect: Connect) -> None:
    class Stubborn(Marked):
        tries = 0

        async def discard(self, made: Thing) -> None:
            self.tries += 1
            if self.tries == 1:
                raise APIConnectionError("not now")
            await super().discard(made)

    Platform(server, answer(503, {}, Retry_After="0.01"))
    stubborn = Stubborn(connect(), [], ["t2", "t1"])
    assert (await stubborn.create()).id == "t2"
    await reaper.drain(stubborn.transport)
    assert (stubborn.tries, stubborn.discarded, owed(stubborn.transport)) == (2, ["t1"], [])


async def test_a_second_that_could_not_be_looked_for_is_told(
    server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    Platform(server, answer(503, {}, Retry_After="0.01"))
    marked = Marked(connect(), [], APIConnectionError("no list"))
    assert (await marked.create()).id == "t2"
    assert "A thing (id t2) was asked for more than once" in caplog.text


async def test_a_rate_limit_makes_nothing_and_is_not_looked_into(
    server: RawServer, connect: Connect
) -> None:
    refused = answer(429, {}, Retry_After="0.01")
    platform, transport = Platform(server, refused), connect()
    marked = Marked(transport)
    assert (await marked.create()).id == "t2"
    assert (platform.made, marked.looks) == (2, 0)


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize("status", [302, 499])
async def test_an_answer_that_settles_nothing_is_looked_into(
    server: RawServer, connect: Connect, status: int
) -> None:
    moved = answer(status, {}, Location="http://elsewhere.invalid/")
    platform, transport = Platform(server, moved), connect()
    marked = Marked(transport, [], ["t1"])
    assert (await marked.create()).id == "t1"
    assert platform.made == 1


@pytest.mark.usefixtures("quick_looks")
async def test_an_error_names_what_is_looked_for(server: RawServer, connect: Connect) -> None:
    Platform(server, reset())
    transport = connect()
    with pytest.raises(APIConnectionError, match="A thing is looked for, and deleted"):
        await Marked(transport).create()
    await transport.aclose()


async def test_a_last_503_of_a_gateway_is_looked_into_as_well(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, answer(503, {}, Retry_After="9999"))
    marked = Marked(connect(), ["t1"])
    assert (await marked.create()).id == "t1"
    assert platform.made == 1


async def test_a_create_that_is_cancelled_after_a_503_leaves_nothing(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server, answer(503, {}, Retry_After="0.4")), connect()
    marked = Marked(transport, ["t1"])
    call = marked.create()
    await server.arrived(1)
    await asyncio.sleep(0.1)
    assert marked.looks == 0, "it is looked for after the wait, right before it is sent again"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    began = time.monotonic()
    await reaper.drain(transport)
    assert time.monotonic() - began < 0.3, "the wait is over with the call"
    assert (platform.made, marked.discarded, owed(transport)) == (1, ["t1"], [])


@pytest.mark.parametrize("step", [reset(), answer(503, {}, Retry_After="0.01")])
async def test_looks_that_hang_end_soon(
    server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    class Hanging(Marked):
        async def find(self) -> list[Thing]:
            await asyncio.sleep(30)
            return []

    monkeypatch.setattr(creation, "LOOK_PATIENCE", 0.2)
    platform = Platform(server, step)
    began = time.monotonic()
    with pytest.raises(APIError, match="A thing may be there"):
        await Hanging(connect()).create(marked=False)
    assert time.monotonic() - began < 5
    assert platform.made == 1


async def test_nothing_is_sent_for_an_obligation_that_was_undone_meanwhile(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server), connect()
    obligation = owe_later(transport, "A thing")
    await asyncio.wrap_future(obligation.call_in())
    with pytest.raises(RuntimeError, match="not made any more"):
        await Marked(transport).create(obligation=obligation)
    assert platform.made == 0


@pytest.mark.usefixtures("quick_looks")
class TestWithoutAMark:
    async def test_what_an_unanswered_create_made_is_found(
        self, server: RawServer, connect: Connect
    ) -> None:
        Platform(server, reset())
        unmarked = Marked(connect(), [], ["t1"])
        assert (await unmarked.create(marked=False)).id == "t1"
        assert unmarked.discarded == []

    async def test_what_appears_after_a_failure_is_left_to_the_caller(
        self, server: RawServer, connect: Connect
    ) -> None:
        Platform(server, reset())
        unmarked = Marked(connect(), [], [], ["t1"], ["t1"])
        with pytest.raises(APIConnectionError, match="A thing may be there"):
            await unmarked.create(marked=False)
        assert owed(unmarked.transport) == []
        await reaper.drain(unmarked.transport)
        assert unmarked.discarded == []

    async def test_of_several_none_is_taken_nor_discarded(
        self, server: RawServer, connect: Connect
    ) -> None:
        Platform(server, reset())
        unmarked = Marked(connect(), *[["t1", "t2"]] * 5)
        with pytest.raises(APIConnectionError, match="may be there"):
            await unmarked.create(marked=False)
        assert unmarked.discarded == []

    async def test_what_was_found_is_not_discarded_by_who_answers_for_it(
        self, server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        Platform(server, reset())
        transport = connect()
        unmarked = Marked(transport, ["t1"])
        obligation = owe_later(transport, "A thing")
        assert (await unmarked.create(marked=False, obligation=obligation)).id == "t1"
        obligation.call_in()
        await reaper.drain(transport)
        assert unmarked.discarded == []
        (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert "may be somebody else's" in record.message

    async def lost(self, server: RawServer, unmarked: Marked, *, another: bool) -> None:
        """A create that is cancelled, and whose answer is lost after that."""
        held = Gate()
        Platform(server, held.before(reset()))
        call = unmarked.create(marked=False)
        await server.arrived(1)
        call.cancel()
        await asyncio.wait([call])
        if another:
            assert (await unmarked.create(marked=False)).id == "t2"
        held.open()
        await reaper.drain(unmarked.transport)

    @pytest.mark.parametrize("another", [False, True])
    async def test_what_a_cancelled_create_left_is_told_and_left(
        self,
        server: RawServer,
        connect: Connect,
        caplog: pytest.LogCaptureFixture,
        another: bool,
    ) -> None:
        unmarked = Marked(connect(), ["t1"], ["t1"])
        await self.lost(server, unmarked, another=another)
        assert unmarked.discarded == []
        (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert "A thing, if it was made, could not be undone" in record.message
        assert "Whether it was made is not known" in record.message

    async def test_what_was_found_after_a_503_is_left_when_the_caller_is_cancelled(
        self, server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        unmarked = Marked(connect(), ["t1"])
        Platform(server, answer(503, {}, Retry_After="0.01"))
        call = unmarked.create(marked=False)
        for _ in range(500):
            if unmarked.looks:
                break
            await asyncio.sleep(0.001)
        call.cancel()
        await asyncio.wait([call])
        await reaper.drain(unmarked.transport)
        assert unmarked.discarded == []
