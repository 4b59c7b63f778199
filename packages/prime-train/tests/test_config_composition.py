"""Sources are laid over one another: tables merge, all else is replaced."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import unhurried

from prime_train.configs.composition import compose, merged, parse_override
from prime_train.configs.values import KeyPath, Table, Value, look_up
from prime_train.errors import InvalidConfigError

KEY = st.sampled_from(["a", "b", "c", "d"])
SCALAR = st.one_of(
    st.none().map(lambda _: "None"), st.booleans(), st.integers(), st.text(max_size=3)
)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEY, inner, max_size=3)),
    max_leaves=8,
)
TABLE = st.dictionaries(KEY, VALUE, max_size=4)


def leaves(value: Value, path: KeyPath = ()) -> dict[KeyPath, Value]:
    """All that is no table, by its path; lists are whole."""
    if isinstance(value, dict):
        return {
            place: leaf
            for key, inner in value.items()
            for place, leaf in leaves(inner, (*path, key)).items()
        }
    return {path: value}


@unhurried
@given(base=TABLE, overlay=TABLE)
def test_all_of_the_overlay_is_there_and_of_the_base_what_it_leaves(
    base: Table, overlay: Table
) -> None:
    before = copy.deepcopy((base, overlay))
    result = merged(base, overlay)
    assert (base, overlay) == before
    for path, leaf in leaves(overlay).items():
        assert look_up(result, path) == (leaf, len(path))
    for path, leaf in leaves(base).items():
        _, steps = look_up(overlay, path)
        there, _ = look_up(overlay, path[:steps])
        if isinstance(there, dict) and steps < len(path):
            assert look_up(result, path) == (leaf, len(path))
    assert set(leaves(result)) <= set(leaves(base)) | set(leaves(overlay))


@unhurried
@given(table=TABLE)
def test_nothing_over_a_table_and_a_table_over_itself_change_nothing(table: Table) -> None:
    assert merged(table, {}) == table
    assert merged({}, table) == table
    assert merged(table, table) == table


@unhurried
@given(tables=st.lists(TABLE, min_size=1, max_size=4))
def test_sources_are_laid_over_one_another_from_left_to_right(tables: list[Table]) -> None:
    expected: Table = {}
    for table in tables:
        expected = merged(expected, table)
    assert compose(tables).table == expected


@unhurried
@given(base=TABLE, path=st.lists(KEY, min_size=1, max_size=3), value=VALUE)
def test_an_override_is_an_overlay_of_one_value(base: Table, path: list[str], value: Value) -> None:
    text = f"{'.'.join(path)}={as_literal(value)}"
    overlay = value
    for key in reversed(path):
        overlay = {key: overlay}
    assert compose([base], [text]).table == merged(base, cast(Table, overlay))


def as_literal(value: Value) -> str:
    """As an override is written: JSON, of which TOML takes the scalars and lists."""
    return json.dumps(value).replace("\x7f", "\\u007f")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1e-6", 1e-6),
        ("a=1_000", 1000),
        ("a=true", True),
        ("a=None", "None"),
        ("a=Qwen/Qwen3-4B", "Qwen/Qwen3-4B"),
        ("a='1'", "1"),
        ('a="x y"', "x y"),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a = 5 ", 5),
        ("a=[1, 2]", [1, 2]),
        ("a={b = 1}", {"b": 1}),
        ('a={"b": null}', {"b": "None"}),
        ("a={not a table}", "{not a table}"),
        ("a=2026-01-01", "2026-01-01"),
        ("a=nan", "nan"),
        ("a=1\nb=2", "1\nb=2"),
    ],
)
def test_values_of_overrides_are_toml_or_json_or_else_text(text: str, value: Value) -> None:
    assert parse_override(text) == (("a",), value)


def test_a_number_leads_into_a_list_and_the_source_stays_as_it_was() -> None:
    source: dict[str, object] = {"a": [{"b": 1, "c": 2}, {"b": 3}], "0": {"x": 1}}
    before = copy.deepcopy(source)
    composition = compose([source], ["a.1.b=4", "a.0.d.e=5", "0.x=2"])
    assert composition.table == {
        "a": [{"b": 1, "c": 2, "d": {"e": 5}}, {"b": 4}],
        "0": {"x": 2},
    }
    assert source == before


@pytest.mark.parametrize("text", ["a.2.b=1", "a.99=1"])
def test_an_override_past_the_end_of_a_list_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="no such element"):
        compose([{"a": [1, 2]}], [text])


@pytest.mark.parametrize("text", ["hunter2", "=hunter2", "a b=hunter2", "a..b=hunter2"])
def test_a_malformed_override_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"dotted\.key=value") as caught:
        compose([{}], [text])
    assert "hunter2" not in str(caught.value)


def test_an_issue_points_at_the_source_that_won(tmp_path: Path) -> None:
    base, overlay = tmp_path / "base.toml", tmp_path / "overlay.toml"
    base.write_text("[a]\nb = 1\nc = 2\nlist = [\n1,\n2]\n")
    overlay.write_text("x = 1\n[a]\nc = 3\n")
    overrides = ["a.b=5", "y.w=1", "x.y.z=1"]
    composition = compose([base, overlay, {"y": {"z": 1}}], overrides)

    def place(*path: str | int) -> tuple[str | None, int | None]:
        issue = composition.issue(path, "message")
        return issue.file, issue.line

    assert place("a", "c") == (str(overlay), 3)
    assert place("a", "b") == ("override", None)
    assert place("a", "list", 1) == (str(base), 6)
    assert place("a", "missing", "deeper") == (str(overlay), 2)
    assert place("y", "z") == (None, None)
    assert place("y", "w") == ("override", None)
    assert place("x") == ("override", None), "what was a value became a table"
    assert place("x", "y") == ("override", None)
    assert place("missing") == (str(base), 1)


def test_a_file_that_is_missing_or_no_text_or_no_toml_is_named(tmp_path: Path) -> None:
    binary, broken = tmp_path / "binary.toml", tmp_path / "broken.toml"
    binary.write_bytes(b"a = '\xff'")
    broken.write_text("a = 1\nkey = hunter2\n")
    for path, words in [
        (tmp_path / "none.toml", "can't be read"),
        (tmp_path, "can't be read"),
        (tmp_path / "\0", "can't be read"),
        (binary, "not UTF-8"),
        (broken, "not TOML"),
    ]:
        with pytest.raises(InvalidConfigError, match=words) as caught:
            compose([path])
        assert caught.value.issues[0].file == str(path)
        assert "hunter2" not in str(caught.value)
    assert caught.value.issues[0].line == 2


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "marked.toml"
    path.write_bytes("a = 1".encode("utf-8-sig"))
    assert compose([path]).table == {"a": 1}
