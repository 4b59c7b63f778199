"""What a .dockerignore leaves out, by Docker's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_sandboxes.dockerignore import DockerIgnore

# Lines of the file; what is left out; what is kept.
CASES: list[tuple[str, str, str]] = [
    ("", "", "a a/b .git"),
    ("foo", "foo foo/a foo/a/b", "a/foo food barfoo"),
    ("/foo", "foo foo/a", "a/foo"),
    ("foo/", "foo foo/a", "food"),
    ("./foo", "foo", "a/foo"),
    ("foo/bar", "foo/bar foo/bar/x", "foo bar foo/barn a/foo/bar"),
    ("*.pyc", "a.pyc .pyc", "b/a.pyc a.py"),
    ("*/temp*", "a/temp a/temporary.txt a/temp/b", "temp temporary a/b/temp"),
    ("*/*/temp*", "a/b/temp", "a/temp a/b/c/temp"),
    ("temp?", "tempa temp1", "temp tempab a/tempa"),
    ("**/x", "x a/x a/b/x x/y", "ax a/xx"),
    ("**/*.go", "m.go a/m.go a/b/.go", "a/m.gox"),
    ("a/**", "a/b a/b/c", "a b"),
    ("a/**/z", "a/z a/b/z a/b/c/z", "z a/b"),
    ("**", "a a/b", ""),
    ("*", "a .a a/b", ""),
    ("[a-c]x", "ax bx cx", "dx x"),
    ("[^a]x", "bx", "ax"),
    ("\\*x", "*x", "ax"),
    ("\\!x", "!x", "x"),
    ("a.b", "a.b", "axb"),
    ("a+b(c)", "a+b(c)", "aab"),
    ("# foo\n#bar", "", "#bar foo"),
    ("  foo  \n\n\t", "foo", "a"),
    ("foo\n!foo/keep", "foo foo/a foo/keeper", "foo/keep foo/keep/x"),
    ("*.md\n!README*.md\nREADME-secret.md", "a.md README-secret.md", "README.md README-x.md"),
    ("*.md\nREADME-secret.md\n!README*.md", "a.md", "README.md README-secret.md"),
    ("!foo\nfoo", "foo", "a"),
    ("**\n!src\n!src/**/*.py", "a b/src", "src src/a src/a.py"),
    ("*\n!*.txt", "a b/a.txt", "a.txt"),
    (".\n/", "", "a"),
    ("é*", "é éa", "e"),
]


@pytest.mark.parametrize(("lines", "left_out", "kept"), CASES, ids=[repr(c[0]) for c in CASES])
def test_patterns_mean_what_they_mean_to_docker(lines: str, left_out: str, kept: str) -> None:
    ignore = DockerIgnore(lines.split("\n"))
    assert {path: ignore.ignores(path) for path in left_out.split()} == dict.fromkeys(
        left_out.split(), True
    )
    assert {path: ignore.ignores(path) for path in kept.split()} == dict.fromkeys(
        kept.split(), False
    )


@pytest.mark.parametrize("line", ["!", "[a", "[z-a]"])
def test_a_line_that_is_no_pattern_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"no pattern|takes nothing"):
        DockerIgnore(["ok", line])


def test_a_folder_with_nothing_to_keep_need_not_be_looked_at() -> None:
    ignore = DockerIgnore(["node_modules", "src", "!src/a/keep", "!**/LICENSE", "!docs"])
    # A pattern that may match anywhere leaves no folder out.
    assert not ignore.ignores_all_in("node_modules")
    ignore = DockerIgnore(["node_modules", "src", "!src/a/keep", "!docs"])
    assert ignore.ignores_all_in("node_modules")
    assert ignore.ignores_all_in("src/b")
    assert not ignore.ignores_all_in("src")
    assert not ignore.ignores_all_in("src/a")
    assert not ignore.ignores_all_in("src/a/keep")


NAMES = st.sampled_from(["a", "b", "ab", "a.b", ".a"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.sampled_from(["a", "b", "*", "**", "?", "a*", "*.b", "[ab]", "."])
LINES = st.lists(
    st.tuples(st.sampled_from(["", "!", "/"]), st.lists(PARTS, min_size=1, max_size=3)).map(
        lambda pair: pair[0] + "/".join(pair[1])
    ),
    max_size=5,
)


@given(LINES, PATHS, PATHS)
def test_what_lies_in_a_folder_that_is_left_out_whole_is_left_out(
    lines: list[str], folder: str, rest: str
) -> None:
    ignore = DockerIgnore(lines)
    if ignore.ignores_all_in(folder):
        assert ignore.ignores(f"{folder}/{rest}")


@given(st.lists(st.text(max_size=12), max_size=4), PATHS)
def test_any_text_is_a_pattern_or_a_named_error(lines: list[str], path: str) -> None:
    try:
        ignore = DockerIgnore(lines)
    except ValueError:
        return
    assert ignore.ignores(path) in (True, False)
