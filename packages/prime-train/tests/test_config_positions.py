"""The lines of keys are those of the text, in every way that TOML can be written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import unhurried

from prime_train.configs.positions import find_lines, split_key
from prime_train.configs.toml import TomlError, parse_toml
from prime_train.configs.values import KeyPath, Table, Value

BARE = st.text("abcXYZ019_-", min_size=1, max_size=4)
ANY_KEY = st.one_of(BARE, st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])))
TEXT = st.text(
    st.one_of(
        st.sampled_from("\"'\\#[]{},=.\n \t"), st.characters(codec="utf-8", max_codepoint=0x2FF)
    ),
    max_size=8,
)
SCALAR = st.one_of(st.booleans(), st.integers(-999, 999), st.floats(-9, 9).map(abs), TEXT)
TREE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(ANY_KEY, inner, max_size=3)
    ),
    max_leaves=12,
)
DOCUMENT = st.dictionaries(ANY_KEY, TREE, max_size=4)


class Writer:
    """Writes a table as TOML, in ways that the test draws, and remembers the lines."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.text = ""
        self.lines: dict[KeyPath, int] = {}

    def choose(self, *ways: str) -> str:
        return self.data.draw(st.sampled_from(ways))

    def note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def key(self, key: str) -> str:
        quoted = json.dumps(key, ensure_ascii=False).replace("\x7f", "\\u007f")
        bare = key and all(letter in "abcXYZ019_-" for letter in key)
        return self.choose(key, quoted, f"'{key}'") if bare else quoted

    def blank(self) -> None:
        self.text += self.choose("", "", "\n", "# a = [1, {b = 2}] \"'\n", "   ", "\r\n")

    def document(self, table: Table) -> None:
        self.table(table, ())

    def table(self, table: Table, path: KeyPath) -> None:
        later: list[tuple[str, Value]] = []
        for key, value in table.items():
            own_header = isinstance(value, dict) or self.is_array_of_tables(value)
            if own_header and self.choose("header", "inline") == "header":
                later.append((key, value))
            else:
                self.pair(key, value, path)
                self.text += self.choose("\n", " # [x]\n", "\r\n")
                self.blank()
        for key, value in later:
            self.headed(key, value, (*path, key))

    def is_array_of_tables(self, value: Value) -> bool:
        return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)

    def headed(self, key: str, value: Value, path: KeyPath) -> None:
        elements = value if isinstance(value, list) else [value]
        for index, element in enumerate(elements):
            place = (*path, index) if isinstance(value, list) else path
            assert isinstance(element, dict)
            self.note(path)
            self.note(place)
            name = " . ".join(self.key(part) for part in place if isinstance(part, str))
            self.text += f"[[{name}]]" if isinstance(value, list) else f"[ {name} ]"
            self.text += self.choose("\n", " # comment ]\n")
            self.table(element, place)

    def pair(self, key: str, value: Value, path: KeyPath) -> None:
        place = (*path, key)
        self.note(place)
        self.text += self.key(key)
        while isinstance(value, dict) and len(value) == 1 and self.choose("dot", "table") == "dot":
            [(inner, value)] = value.items()
            place = (*place, inner)
            self.note(place)
            self.text += self.choose(".", " . ") + self.key(inner)
        self.text += self.choose("=", " = ")
        self.value(value, place)

    def value(self, value: Value, path: KeyPath) -> None:
        if isinstance(value, dict):
            self.text += "{ "
            for number, (key, inner) in enumerate(value.items()):
                self.text += ", " if number else ""
                self.pair(key, inner, path)
            self.text += " }"
        elif isinstance(value, list):
            self.text += "["
            for index, element in enumerate(value):
                self.blank()
                self.note((*path, index))
                self.value(element, (*path, index))
                self.text += self.choose(",", " ,\n")
            self.blank()
            self.text += "]"
        elif isinstance(value, str):
            self.string(value)
        else:
            self.text += json.dumps(value)

    def string(self, value: str) -> None:
        escaped = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        printable = value.isprintable()
        ways = [escaped]
        if printable and "'" not in value:
            ways += [f"'{value}'", f"'''\n{value}'''"]
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        if value.replace("\n", "").isprintable():
            ways.append(f'"""\n{plain}"""')
        if printable and "\\" not in value and '"' not in value:
            ways.append(f'"""{value}\\\n   """')
        self.text += self.choose(*ways)


def paths(value: Value, path: KeyPath = ()) -> set[KeyPath]:
    """Every path of a parsed document."""
    found: set[KeyPath] = {path} if path else set()
    inner: list[tuple[str | int, Value]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return found.union(*(paths(part, (*path, key)) for key, part in inner))


@unhurried
@given(data=st.data(), table=DOCUMENT)
def test_every_key_and_element_is_found_in_its_line(data: st.DataObject, table: Table) -> None:
    writer = Writer(data)
    writer.document(table)
    parsed = parse_toml(writer.text)
    lines = find_lines(writer.text)
    assert set(lines) == paths(parsed)
    for path, line in writer.lines.items():
        assert lines[path] == line, path


def test_tables_of_arrays_belong_to_the_newest_element() -> None:
    text = """\
[[a]]
[a.b]
x = 1
[[a.c]]
y = 2
[[a]]
[[a.c]]
[[a.c]]
d.e."f.g" = 3
"""
    lines = find_lines(text)
    assert lines[("a",)] == 1
    assert lines[("a", 0, "b", "x")] == 3
    assert lines[("a", 0, "c", 0, "y")] == 5
    assert lines[("a", 1)] == 6
    assert lines[("a", 1, "c", 1, "d", "e", "f.g")] == 9


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("a.b-c.0", ("a", "b-c", "0")),
        ("a . \"b.c\".'d'", ("a", "b.c", "d")),
        ('"\\u0061"', ("a",)),
        ("", None),
        ("a.", None),
        ("a b", None),
        (".a", None),
        ('"open', None),
        ('"\\q"', None),
    ],
)
def test_dotted_keys_are_split_as_toml_splits_them(
    text: str, parts: tuple[str, ...] | None
) -> None:
    assert split_key(text) == parts


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = \n", 2), ("a = 1\na = 2\n", 2), ("\n\n[x\n", 3)],
)
def test_what_is_no_toml_is_reported_with_its_line(text: str, line: int) -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(text)
    assert caught.value.line == line
    assert caught.value.__cause__ is None


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(TomlError):
        parse_toml("a = " + "[" * 100_000)


def test_quotes_brackets_and_line_breaks_inside_strings_end_nothing() -> None:
    text = '''\
a = """x""""
b = \'\'\'y\'\'\'\'\'
c = """
[t]
\\"""
"""
d = ["]", '#,', """]
""", {e = "}"}]
'''
    assert set(find_lines(text)) == paths(parse_toml(text))
    assert find_lines(text)[("d",)] == 7
    assert find_lines(text)[("d", 3, "e")] == 8
