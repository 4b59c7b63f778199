"""Reading the platform's SSH texts, which may say anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_compute import SSHConnection
from prime_compute.ssh import parse_ssh_connections


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ([None], ()),
        (["root@a -p 1", None], ()),
        ("root@203.0.113.24 -p 22", (SSHConnection("root", "203.0.113.24", 22),)),
        ("ubuntu@host.example.com", (SSHConnection("ubuntu", "host.example.com", 22),)),
        (" root@10.0.0.1  -p 1022 ", (SSHConnection("root", "10.0.0.1", 1022),)),
        ("root@[2001:db8::1] -p 22", (SSHConnection("root", "2001:db8::1", 22),)),
        ("root@2001:db8::1", (SSHConnection("root", "2001:db8::1", 22),)),
        (
            ["root@a -p 1", "root@b -p 2"],
            (SSHConnection("root", "a", 1), SSHConnection("root", "b", 2)),
        ),
    ],
)
def test_every_form_is_read(
    value: str | list[str | None] | None, found: tuple[SSHConnection, ...]
) -> None:
    assert parse_ssh_connections(value) == found


@pytest.mark.parametrize(
    "text",
    [
        "root@-oProxyCommand=id",
        "-oProxyCommand=id@host",
        "root@host -p 22 -o ProxyCommand=id",
        "root@host;id",
        "root@host\nid",
        "root@$(id)",
        "root@host -p 0",
        "root@host -p 65536",
        "root@host -p",
        "root@",
        "@host",
        "host",
        "root@a..b",
        "root@[host]",
        "root@1:2:3",
        "root@ho st",
        "root@höst",
        "root@host -p \uff12\uff12",
    ],
)
def test_what_is_no_connection_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"SSH|host name"):
        parse_ssh_connections(text)


@given(st.text(max_size=60) | st.text(alphabet="root@-p 12.:[]a;$", max_size=30))
def test_whatever_is_read_is_safe_to_hand_to_a_program(text: str) -> None:
    try:
        found = parse_ssh_connections(text)
    except ValueError:
        return
    for connection in found:
        words = connection.command
        assert words[:2] == ["ssh", "-p"]
        assert 1 <= int(words[2]) <= 65_535
        assert words[3] == "--"
        assert not words[4].startswith("-")
        assert words[4].isascii()
        assert not set(words[4]) & set(" ;$`'\"\\\n|&<>(){}*?!#~")
        assert parse_ssh_connections(str(connection)) == (connection,)
