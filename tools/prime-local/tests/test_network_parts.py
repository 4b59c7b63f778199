"""Parts of the networks that need no platform: entries, addresses, the filter's text."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prime_local.networks.addresses import MACHINE, MACHINE_NAME, RANGE, AddressPool, look_up
from prime_local.networks.entries import Entry, canonical, read_entry
from prime_local.networks.ruleset import Lan, Outbound, Rule, write_ruleset

addresses = st.integers(0, 2**32 - 1).map(IPv4Address)
networks = st.builds(
    lambda address, prefix: IPv4Network((address, prefix), strict=False),
    addresses,
    st.integers(0, 32),
)
ports = st.tuples(st.integers(1, 65535), st.integers(1, 65535)).map(
    lambda pair: tuple(sorted(pair))
)
labels = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=4).map(".".join)
entries = st.one_of(
    st.builds(Entry, networks, st.none() | ports),
    st.builds(Entry, names, st.sampled_from([None, (80, 80), (443, 443)])),
)


@given(entries)
def test_an_entry_reads_back_as_it_is_written(entry: Entry) -> None:
    assert read_entry(str(entry)) == entry


@given(st.text(max_size=40))
@example("²")
def test_any_text_is_an_entry_or_refused(text: str) -> None:
    try:
        entry = read_entry(text)
    except ValueError:
        return
    assert read_entry(str(entry)) == entry


def test_a_wrong_entry_is_named_by_its_position() -> None:
    with pytest.raises(ValueError, match="entry 1: not a host name"):
        canonical(["a.example", "a b"])


def test_addresses_are_distinct_and_used_again_as_late_as_possible() -> None:
    pool = AddressPool()
    first = pool.take()
    pool.give_back(first)
    taken = [pool.take() for _ in range(500)]
    assert len(set(taken)) == 500
    assert first not in taken
    assert all(address in RANGE for address in taken)


async def test_names_lead_to_addresses() -> None:
    found = await look_up(["localhost", MACHINE_NAME, "*.internal", "*.example", "no.invalid"])
    # What is this machine here, is this machine for a sandbox.
    assert found == {
        "localhost": [MACHINE],
        MACHINE_NAME: [MACHINE],
        "*.internal": [MACHINE],
        "*.example": [],
        "no.invalid": [],
    }


def chain(text: str, name: str) -> list[str]:
    match = re.search(rf"^chain {name} \{{\n(.*?)^\}}", text, re.DOTALL | re.MULTILINE)
    assert match is not None, name
    return match[1].splitlines()


def test_a_sandbox_without_rules_may_send_nothing_outside() -> None:
    text = write_ruleset([], [], {})
    assert chain(text, "out")[-1] == "goto refuse"
    assert not any("vmap" in line for line in chain(text, "out"))


def test_allowed_entries_are_accepted_and_refused_ones_are_not() -> None:
    one, other = IPv4Address("198.18.0.1"), IPv4Address("198.18.0.2")
    listed = (
        Entry("a.example", (443, 443)),
        Entry(IPv4Network("10.0.0.0/9")),
        Entry(IPv4Network("10.128.0.0/9")),
        Entry("*.nowhere"),
    )
    found = {"a.example": [IPv4Address("1.2.3.4")]}
    text = write_ruleset([Outbound(one, True, listed), Outbound(other, False, listed)], [], found)
    web = "ip daddr { 1.2.3.4/32 } meta l4proto { tcp, udp } th dport 443"
    assert chain(text, "out0") == [f"{web} accept", "ip daddr { 10.0.0.0/8 } accept"]
    refused = [f"{web} goto refuse", "ip daddr { 10.0.0.0/8 } goto refuse"]
    assert chain(text, "out1") == [*refused, "accept"]
    assert f"{one} : jump out0, {other} : jump out1" in text


def test_rules_of_a_network_name_its_members_by_tags() -> None:
    web, db = IPv4Address("198.18.0.1"), IPv4Address("198.18.0.2")
    rules = (
        Rule("tag:web", "tag:db", (6379, 5432)),
        Rule("tag:nobody", "*", None),
        Rule("internet", "*", (80,)),
        Rule("*", "*", ()),
    )
    text = write_ruleset([], [Lan({web: ["web"], db: ["db"]}, rules)], {})
    assert chain(text, "lan0") == [
        "ip saddr @lan0_1 ip daddr @lan0_2 tcp dport { 5432, 6379 } accept",
        "ip saddr @lan0_3 ip daddr @lan0 meta l4proto tcp accept",
    ]
    assert f"set lan0_1 {{\ntype ipv4_addr\nelements = {{ {web} }}\n}}" in text
    assert "set lan0_3 {\ntype ipv4_addr\n}" in text
