from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_sandboxes.models import MAX_EGRESS_POLICY_ENTRIES, validate_egress_lists


@pytest.mark.parametrize(
    "entry",
    [
        "api.openai.com",
        "*.example.com",
        "localhost",
        "Example.COM",
        "bücher.example",
        "_dmarc.example.com",
        "example.com:443",
        "example.com:80",
        "*.example.com:443",
        "1.2.3.4",
        "0.0.0.0/0",
        "10.0.0.0/8",
        "1.2.3.4/32:8000-8010",
        "1.2.3.4:65535",
        "a" * 63 + ".example",
    ],
)
def test_a_documented_egress_entry_is_accepted(entry: str) -> None:
    validate_egress_lists([entry], None)
    validate_egress_lists(None, [entry])


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("", "not a host name"),
        ("*", "bare"),
        ("*:443", "bare"),
        ("*.", "not a host name"),
        ("a.*.example", "not a host name"),
        ("*.*.example", "not a host name"),
        ("*.1.2.3.4", "not a host name"),
        ("https://example.com", "URL"),
        ("user:pw@example.com", "URL"),
        ("example.com?x", "URL"),
        ("example.com/path", "not a host name"),
        ("example .com", "not a host name"),
        ("example.com\n", "not a host name"),
        ("-a.example", "not a host name"),
        ("a-.example", "not a host name"),
        ("a..example", "not a host name"),
        ("a" * 64 + ".example", "not a host name"),
        ("a." * 127, "not a host name"),
        ("1.2.3", "not a host name"),
        ("1.2.3.256", "not a host name"),
        ("1.2.3.4/33", "not a host name"),
        ("1.2.3.4/255.0.0.0", "not a host name"),
        ("1.2.3.4/", "not a host name"),
        ("::1", "IPv6"),
        ("[::1]:80", "IPv6"),
        ("1.2.3.4:", "port"),
        ("1.2.3.4:http", "port"),
        ("1.2.3.4:0", "1 to 65535"),
        ("1.2.3.4:65536", "1 to 65535"),
        ("1.2.3.4:20-10", "1 to 65535"),
        ("1.2.3.4:1-2-3", "port"),
        ("example.com:8080", "80 or 443"),
        ("example.com:80-443", "80 or 443"),
    ],
)
def test_an_entry_that_is_no_egress_rule_is_refused(entry: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        validate_egress_lists(None, ["fine.example", entry])


def test_an_egress_list_has_a_longest_length() -> None:
    validate_egress_lists(["a.example"] * MAX_EGRESS_POLICY_ENTRIES, None)
    with pytest.raises(ValueError, match="1025 entries"):
        validate_egress_lists(["a.example"] * (MAX_EGRESS_POLICY_ENTRIES + 1), None)


def test_no_egress_list_and_an_empty_one_are_both_fine() -> None:
    validate_egress_lists(None, None)
    validate_egress_lists([], None)
    validate_egress_lists(None, [])


@given(st.text() | st.text("0123456789.:/-*a", max_size=20))
def test_any_text_is_accepted_or_refused_with_its_position(entry: str) -> None:
    try:
        validate_egress_lists([entry], None)
    except ValueError:
        with pytest.raises(ValueError, match=r"^denylist\[1\]: "):
            validate_egress_lists(None, ["fine.example", entry])


def test_a_refused_entry_is_not_quoted() -> None:
    with pytest.raises(ValueError, match="URL") as caught:
        validate_egress_lists(["https://user:s3cret@example.com"], None)
    assert "s3cret" not in str(caught.value)
