"""Where the keys of a TOML text stand; the parser of the standard library does not say."""

from __future__ import annotations

import re
from bisect import bisect_left

from prime_train.configs.toml import parse_toml
from prime_train.configs.values import KeyPath

__all__ = ["find_lines", "split_key"]

_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SCALAR = re.compile(
    r'''"""(?:\\[\s\S]|[^\\])*?""""{0,2}'''
    r"""|'''[\s\S]*?''''{0,2}"""
    r"""|"(?:\\.|[^"\\])*"|'[^']*'"""
    r"""|[^,\]}#\r\n]+"""
)


def find_lines(text: str) -> dict[KeyPath, int]:
    """Give the line, from 1, of each key, table and list element of a valid TOML text."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def split_key(text: str) -> tuple[str, ...] | None:
    """Split a dotted key as TOML does, quoted parts included; `None` when it is none."""
    try:
        scanner = _Scanner(text)
        parts = scanner.key()
    except ValueError:
        return None
    return parts if scanner.at == len(text) else None


class _Scanner:
    """Walks through a text that the real parser has accepted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._tables_in: dict[KeyPath, int] = {}  # arrays of tables: how many there are so far

    def document(self) -> None:
        table: KeyPath = ()
        self._skip_blank()
        while self.at < len(self.text):
            if self._peek("[["):
                table = self._element_header()
            elif self._peek("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip_blank()

    def key(self) -> tuple[str, ...]:
        parts = [self._key_part()]
        while dot := _DOT.match(self.text, self.at):
            self.at = dot.end()
            parts.append(self._key_part())
        return tuple(parts)

    def _key_part(self) -> str:
        found = _KEY_PART.match(self.text, self.at)
        if found is None:
            raise ValueError("no key")
        self.at = found.end()
        part = found.group()
        return str(parse_toml(f"key = {part}")["key"]) if part[0] in "\"'" else part

    def _header(self) -> KeyPath:
        start = self.at
        self.at += 1
        self._skip_blank()
        path = self._record((), self.key(), start)
        self._take("]")
        return path

    def _element_header(self) -> KeyPath:
        start = self.at
        self.at += 2
        self._skip_blank()
        *parents, name = self.key()
        array = (*self._record((), tuple(parents), start), name)
        index = self._tables_in.get(array, 0)
        self._tables_in[array] = index + 1
        self._note(array, start)
        self._note((*array, index), start)
        self._take("]")
        self._take("]")
        return (*array, index)

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = self._record(table, self.key(), start)
        self._take("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip_blank()
        if self._peek("["):
            self._array(path)
        elif self._peek("{"):
            self._inline_table(path)
        else:
            scalar = _SCALAR.match(self.text, self.at)
            assert scalar is not None
            self.at = scalar.end()

    def _array(self, path: KeyPath) -> None:
        self._take("[")
        index = 0
        while not self._at_end("]"):
            self._note((*path, index), self.at)
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._take("{")
        while not self._at_end("}"):
            self._pair(path)

    def _at_end(self, bracket: str) -> bool:
        self._skip_blank()
        if self._peek(","):
            self.at += 1
            self._skip_blank()
        ended = self._peek(bracket)
        self.at += ended
        return ended

    def _record(self, table: KeyPath, key: tuple[str, ...], start: int) -> KeyPath:
        """Note a key and what it passes through; return its path, in the newest elements."""
        path = table
        for part in key:
            path = (*path, part)
            self._note(path, start)
            if path in self._tables_in:
                path = (*path, self._tables_in[path] - 1)
        return path

    def _note(self, path: KeyPath, start: int) -> None:
        self.lines.setdefault(path, bisect_left(self._newlines, start) + 1)

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        assert blank is not None
        self.at = blank.end()

    def _peek(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def _take(self, mark: str) -> None:
        self._skip_blank()
        assert self._peek(mark)
        self.at += len(mark)
