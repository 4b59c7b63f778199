"""Reading Dockerfiles: lines, words, variables, and the steps they come to."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local.images.dockerfile import (
    Copy,
    DockerfileError,
    ImageSettings,
    MakeFolder,
    Plan,
    Run,
    base_of,
    plan,
)
from prime_local.images.words import WordError, expand, split_words

BASE = ImageSettings({"BASE": "1"}, "/base", None)


def planned(text: str) -> Plan:
    return plan(f"FROM debian\n{text}", BASE, "/bin")


def actions(text: str) -> list[Run | Copy | MakeFolder | None]:
    return [step.action for step in planned(text).steps]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("$A", "1"),
        ("${A}b$A", "1b1"),
        ("$NONE-x", "-x"),
        ("$", "$"),
        ("$1", "$1"),
        ("a\\$A", "a$A"),
        ("'$A'", "$A"),
        ('"$A b"', "1 b"),
        ('"\\"\\n"', '"\\n'),
        ("'\\x'", "\\x"),
        ("a\\ b", "a b"),
        ("${A:-x}${B:-x}${B:-}", "1x"),
        ("${A:+x}${B:+x}", "x"),
        ("${B:-${A}$A}", "11"),
        ("trailing\\", "trailing\\"),
    ],
)
def test_words_are_expanded_as_docker_does(word: str, expected: str) -> None:
    assert expand(word, {"A": "1"}) == expected


@pytest.mark.parametrize("word", ["${A", "${A:?x}", "${A#x}", "${}", "${1}"])
def test_a_variable_in_an_unknown_form_is_an_error(word: str) -> None:
    with pytest.raises(WordError):
        expand(word, {})


@given(st.lists(st.text(min_size=1, max_size=12).filter(lambda text: "\0" not in text)))
def test_what_a_shell_would_quote_comes_back(words: list[str]) -> None:
    line = " ".join(shlex.quote(word) for word in words)
    assert [expand(word, {"A": "1"}) for word in split_words(line)] == words


@given(st.text(max_size=30), st.dictionaries(st.sampled_from("AB"), st.text(max_size=5)))
def test_any_line_has_words_or_a_named_fault(line: str, variables: dict[str, str]) -> None:
    try:
        words = split_words(line)
        for word in words:
            expand(word, variables)
    except WordError:
        return
    assert all(words)
    assert "".join("".join(words).split()) == "".join(line.split())


def test_lines_are_joined_and_comments_dropped() -> None:
    text = "RUN a \\\n  # no\n\n  b \\ \n c\n   # nor this\nrun d"
    assert actions(text) == [
        Run(("/bin/sh", "-c", "a   b  c")),
        Run(("/bin/sh", "-c", "d")),
    ]
    assert actions("RUN last \\") == [Run(("/bin/sh", "-c", "last"))]


def test_a_command_is_words_or_a_line_for_the_shell() -> None:
    assert actions('RUN ["a", "b c"]') == [Run(("a", "b c"))]
    # What is no JSON list of words is the shell's.
    assert actions("RUN ['a']") == [Run(("/bin/sh", "-c", "['a']"))]
    assert actions("RUN [ -f x ]") == [Run(("/bin/sh", "-c", "[ -f x ]"))]
    assert actions("RUN echo $A") == [Run(("/bin/sh", "-c", "echo $A"))]


def test_settings_build_on_those_of_the_base() -> None:
    made = planned("ENV A=$BASE B='x y'\nWORKDIR sub\nWORKDIR $A\nUSER ${A}a\nENV C old  style ")
    assert made.settings == ImageSettings(
        {"BASE": "1", "A": "1", "B": "x y", "C": "old  style"}, "/base/sub/1", "1a"
    )
    assert planned("ENV PATH=/x:$PATH").settings.env["PATH"] == "/x:/bin"
    assert [step.action for step in made.steps][1:3] == [
        MakeFolder("/base/sub"),
        MakeFolder("/base/sub/1"),
    ]


def test_targets_are_below_the_working_directory() -> None:
    found = actions("COPY a b\nCOPY a .\nCOPY a c/\nWORKDIR /\nCOPY a b\nADD --chmod=755 x /y")
    targets = [action.target for action in found if isinstance(action, Copy)]
    assert targets == ["/base/b", "/base/", "/base/c/", "/b", "/y"]
    last = found[-1]
    assert isinstance(last, Copy)
    assert (last.mode, last.unpack, last.sources) == (0o755, True, ("x",))


@pytest.mark.parametrize("text", ["FROM", "FROM a b", "FROM a AS", "FROM $X", "FROM --x=1 a"])
def test_a_base_is_one_image(text: str) -> None:
    with pytest.raises(DockerfileError, match="line 1: FROM"):
        base_of(text)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["RUN", "COPY", "ADD", "ENV", "WORKDIR", "USER", "#", "x", "FROM", ""]),
            st.text(alphabet=" ab=$\"'\\[]{}:-+/,.\n<", max_size=20),
        ),
        max_size=5,
    )
)
def test_any_dockerfile_is_planned_or_refused_with_its_line(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{name} {rest}" for name, rest in lines)
    try:
        made = planned(text)
    except DockerfileError as error:
        assert "line" in str(error)  # noqa: PT017
        return
    for step in made.steps:
        if isinstance(step.action, (Copy, MakeFolder)):
            path = step.action.target if isinstance(step.action, Copy) else step.action.path
            assert path.startswith("/")
