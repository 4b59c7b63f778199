"""Creates without a key: sent once, and what they made is never lost track of."""

from __future__ import annotations

import asyncio
import gc
import logging
import time

import pytest
from raw_server import Gate, RawServer, answer, reset
from rows import DELETE, POKE, Thing
from transports import Connect
from unkeyed_creates import Marked, Platform, owed

from prime_core.creation import create_unkeyed, owe_later
from prime_core.errors import APIConnectionError, ConflictError
from prime_core.reaper import Obligation, reaper
from prime_core.transport import AsyncTransport

pytestmark = pytest.mark.usefixtures("quick_retries")


def create(transport: AsyncTransport, obligation: Obligation | None = None) -> asyncio.Task[Thing]:
    """A create under way."""

    async def discard(made: Thing) -> None:
        await transport.request(DELETE, path={"thing_id": made.id})

    return asyncio.ensure_future(
        create_unkeyed(
            transport,
            POKE,
            Thing,
            path={},
            description="A thing",
            discard=discard,
            obligation=obligation,
        )
    )


async def test_what_is_made_is_the_callers(server: RawServer, connect: Connect) -> None:
    platform, transport = Platform(server), connect()
    assert (await create(transport)).id == "t1"
    assert owed(transport) == []
    await transport.aclose()
    assert (platform.made, platform.deleted) == (1, [])


async def test_what_a_cancelled_create_makes_is_discarded(
    server: RawServer, connect: Connect
) -> None:
    held = Gate()
    platform = Platform(server, held.before(answer(200, {"id": "t1"})))
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    started = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - started < 0.2, "the cancellation waits for nothing"
    assert platform.deleted == []
    held.open()
    await reaper.drain(transport)
    assert (platform.made, platform.deleted) == (1, ["t1"])
    assert owed(transport) == []


async def test_a_create_that_only_waits_is_not_sent_any_more(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, answer(429, Retry_After="30"))
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await reaper.drain(transport)
    assert (platform.made, platform.deleted) == (1, [])
    assert owed(transport) == []


async def test_a_client_that_is_closed_in_the_middle_of_a_create_leaves_no_connection(
    server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    held = Gate()
    Platform(server, held.before(answer(200, {"id": "t1"})))
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    await transport.aclose()
    held.open()
    assert (await call).id == "t1"
    gc.collect()
    assert caplog.records == []


async def test_a_lost_answer_is_the_callers_to_look_into(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server, reset()), connect()
    with pytest.raises(APIConnectionError) as caught:
        await create(transport)
    assert caught.value.sent == "unknown"
    assert platform.made == 1, "an unsafe row is sent once"
    assert owed(transport) == []


async def test_a_lost_answer_to_a_cancelled_create_is_told_in_the_log(
    server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    held = Gate()
    Platform(server, held.before(reset()))
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    call.cancel()
    await asyncio.wait([call])
    held.open()
    await reaper.drain(transport)
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert (
        "A thing, if it was made, could not be undone and may go on costing money" in record.message
    )


async def test_a_refusal_owes_nothing(server: RawServer, connect: Connect) -> None:
    Platform(server, answer(409, {"detail": "no"}))
    transport = connect()
    with pytest.raises(ConflictError):
        await create(transport)
    assert owed(transport) == []


async def test_an_obligation_of_the_callers_outlives_the_create(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server), connect()
    obligation = owe_later(transport, "A thing")
    await create(transport, obligation)
    assert owed(transport) == [obligation]
    obligation.call_in()
    await reaper.drain(transport)
    assert platform.deleted == ["t1"]


async def test_an_obligation_for_what_is_still_to_come_undoes_nothing(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server), connect()
    owe_later(transport, "A thing").call_in()
    await reaper.drain(transport)
    assert (platform.made, owed(transport)) == (0, [])


@pytest.mark.usefixtures("quick_looks")
class TestMarks:
    async def test_what_an_unanswered_create_made_is_found_by_its_mark(
        self, server: RawServer, connect: Connect
    ) -> None:
        platform = Platform(server, reset())
        marked = Marked(connect(), [], ["t1"])
        assert (await marked.create()).id == "t1"
        assert server.requests[0].json == {"name": "a-mark"}
        assert (platform.made, marked.looks, marked.discarded) == (1, 2, [])
        assert owed(marked.transport) == []

    async def test_an_answer_that_cant_be_read_is_as_good_as_lost(
        self, server: RawServer, connect: Connect
    ) -> None:
        Platform(server, answer(200, {"unlike": "a thing"}))
        marked = Marked(connect(), ["t1"])
        assert (await marked.create()).id == "t1"

    async def test_one_of_several_is_kept(self, server: RawServer, connect: Connect) -> None:
        Platform(server, reset())
        marked = Marked(connect(), ["t1", "t2", "t3"])
        assert (await marked.create()).id == "t1"
        assert marked.discarded == ["t2", "t3"]

    async def test_what_appears_late_is_discarded(
        self, server: RawServer, connect: Connect
    ) -> None:
        Platform(server, reset())
        marked = Marked(connect(), [], [], [], ["t1"])
        with pytest.raises(APIConnectionError):
            await marked.create()
        assert marked.discarded == []
        await reaper.drain(marked.transport)
        assert (marked.discarded, marked.looks) == (["t1"], 4)
        assert owed(marked.transport) == []

    async def test_what_never_appears_is_looked_for_in_a_bounded_time(
        self, server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        Platform(server, reset())
        marked = Marked(connect())
        with pytest.raises(APIConnectionError):
            await marked.create()
        started = time.monotonic()
        await reaper.drain(marked.transport)
        assert time.monotonic() - started < 2
        assert marked.looks > 3
        assert owed(marked.transport) == []
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []

    async def test_the_clients_end_waits_for_a_part_of_the_search_that_goes_on(
        self, server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("prime_core.creation.WAITED_PATIENCE", 0.1)
        monkeypatch.setattr("prime_core.creation.LATE_PATIENCE", 20.0)
        Platform(server, reset())
        marked = Marked(connect())
        with pytest.raises(APIConnectionError):
            await marked.create()
        started = time.monotonic()
        await reaper.drain(marked.transport)
        assert time.monotonic() - started < 1
        marked.lists.append(["t1"])
        while not marked.discarded:
            assert time.monotonic() - started < 5
            await asyncio.sleep(0.01)
        assert marked.discarded == ["t1"]

    async def test_what_is_found_and_cant_be_discarded_is_named_by_its_id(
        self, server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        Platform(server, reset())
        marked = Marked(connect(), [], [], ["t1"])

        async def refused(made: Thing) -> None:
            raise ConflictError("in use")

        marked.discard = refused  # type: ignore[method-assign]
        with pytest.raises(APIConnectionError):
            await marked.create()
        await reaper.drain(marked.transport)
        (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert "A thing (id t1) could not be undone" in record.message

    async def test_what_cant_be_looked_for_is_told_in_the_log(
        self, server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        Platform(server, reset())
        marked = Marked(connect(), *[ConflictError("no list")] * 100)
        with pytest.raises(APIConnectionError):
            await marked.create()
        await reaper.drain(marked.transport)
        (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert "A thing, if it was made, could not be undone" in record.message

    async def test_a_refusal_is_not_looked_into(self, server: RawServer, connect: Connect) -> None:
        Platform(server, answer(409, {"detail": "no"}))
        marked = Marked(connect(), ["t1"])
        with pytest.raises(ConflictError):
            await marked.create()
        assert (marked.looks, owed(marked.transport)) == (0, [])

    async def test_a_cancelled_look_goes_on_in_the_background(
        self, server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("prime_core.creation.FIRST_LOOKS", (30.0,))
        Platform(server, reset())
        marked = Marked(connect(), ["t1"])
        call = marked.create()
        await server.arrived(1)
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await reaper.drain(marked.transport)
        assert marked.discarded == ["t1"]

    async def test_a_cancelled_create_whose_answer_is_lost_is_found_and_discarded(
        self, server: RawServer, connect: Connect
    ) -> None:
        held = Gate()
        Platform(server, held.before(reset()))
        marked = Marked(connect(), [], ["t1"])
        call = marked.create()
        await server.arrived(1)
        call.cancel()
        await asyncio.wait([call])
        held.open()
        await reaper.drain(marked.transport)
        assert marked.discarded == ["t1"]
        assert owed(marked.transport) == []
