"""The descriptor limit: raised for a fleet, as far as the system allows it."""

from __future__ import annotations

import pytest
from programs import run

pytest.importorskip("resource")

PROGRAM = """
    import asyncio, logging, resource, sys
    from transports import transport_to

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    soft, hard, wanted = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    async def main():
        transport = transport_to("http://127.0.0.1:9", max_connections=16)
        before = transport._states.get().stream._value
        transport.want_streams(wanted)
        transport.want_streams(wanted)
        print(before, transport._states.get().stream._value)
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        await transport.aclose()

    asyncio.run(main())
"""


def test_a_fleet_gets_the_descriptors_that_it_needs_and_hears_of_it_once() -> None:
    done = run(PROGRAM, "256", "1024", "500")
    said, places, limit = done.out.splitlines()
    assert said == f"INFO Raised the descriptor limit from 256 to {limit}."
    assert int(limit) >= 500 + 16
    before, after = map(int, places.split())
    assert before < 256
    assert 500 <= after <= int(limit)


def test_a_fleet_that_is_too_large_for_the_system_hears_of_it_and_goes_on() -> None:
    done = run(PROGRAM, "256", "300", "500")
    *said, places, limit = done.out.splitlines()
    assert limit == "300"
    assert said
    assert all(line.startswith("WARNING") and "ulimit -n" in line for line in said)
    before, after = map(int, places.split())
    assert before < after < 300


def test_a_limit_that_is_high_enough_is_left_alone() -> None:
    done = run(PROGRAM, "1024", "1024", "100")
    assert done.out.splitlines()[1:] == ["1024"]
