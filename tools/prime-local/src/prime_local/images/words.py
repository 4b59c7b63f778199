"""The words of a Dockerfile's lines: quotes, escapes and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_NAME = re.compile(r"[A-Za-z_]\w*")
_BRACED = re.compile(r"([A-Za-z_]\w*)(?::([-+])(.*))?", re.DOTALL)


class WordError(ValueError):
    """A line is malformed; the text says how."""


def split_words(text: str) -> list[str]:
    """Split at white space outside of quotes; quotes and escapes stay."""
    words: list[str] = []
    word, quote, at = "", "", 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\" and quote != "'":
            word += text[at - 1 : at + 1]
            at += 1
        elif quote:
            word += character
            quote = "" if character == quote else quote
        elif character in "\"'":
            word += character
            quote = character
        elif character.isspace():
            if word:
                words.append(word)
            word = ""
        else:
            word += character
    if quote:
        raise WordError(f"a quote {quote} is not closed")
    return [*words, word] if word else words


def expand(word: str, variables: Mapping[str, str]) -> str:
    """Take quotes and escapes off a word and put variables in.

    Raises:
        WordError: it is malformed.
    """
    return "".join(_expanded(word, variables))


def _expanded(word: str, variables: Mapping[str, str]) -> Iterator[str]:
    quote, at = "", 0
    while at < len(word):
        character = word[at]
        at += 1
        if character == "\\" and quote != "'" and at < len(word):
            following = word[at]
            at += 1
            # Within double quotes only these can be escaped.
            yield following if not quote or following in '"$\\' else character + following
        elif quote and character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        elif character == "$" and quote != "'":
            value, at = _variable(word, at, variables)
            yield value
        else:
            yield character


def _variable(word: str, at: int, variables: Mapping[str, str]) -> tuple[str, int]:
    """Return the value of the variable whose name begins at `at`, and where it ends."""
    if word[at : at + 1] != "{":
        name = _NAME.match(word, at)
        return (variables.get(name[0], ""), name.end()) if name else ("$", at)
    end = _closing_brace(word, at)
    found = _BRACED.fullmatch(word[at + 1 : end])
    if found is None:
        raise WordError(f"${word[at : end + 1]} is not supported")
    value, form, other = variables.get(found[1], ""), found[2], found[3] or ""
    if form is not None and bool(value) == (form == "+"):
        value = expand(other, variables)
    return value, end + 1


def _closing_brace(word: str, at: int) -> int:
    depth = 0
    for place in range(at, len(word)):
        depth += {"{": 1, "}": -1}.get(word[place], 0)
        if depth == 0:
            return place
    raise WordError("a ${ is not closed")
