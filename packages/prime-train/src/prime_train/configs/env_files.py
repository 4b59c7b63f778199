"""Files of environment variables: `KEY=VALUE` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from prime_train.errors import ConfigIssue

__all__ = ["EnvProblem", "expanded_argument", "read_env_file"]

_BLANK = re.compile(r"(?:\s+|#[^\n]*)*")
_START = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=")
_VALUE = re.compile(
    r"""[ \t]*'(?P<literal>[^']*)'"""
    r'''|[ \t]*"(?P<quoted>(?:\\.|[^"\\])*)"'''
    r"""|(?P<plain>(?![ \t]*['"])(?:(?![ \t]+#)[^\n])*)""",
    re.DOTALL,
)
_END = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")
_VARIABLE = r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"
_PLAIN_MARK = re.compile(_VARIABLE)
_QUOTED_MARK = re.compile(_VARIABLE + r"|\\(?P<escaped>.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class EnvProblem(Exception):
    """A variable or a file of them is unusable.

    Attributes:
        issue: what is wrong, without the value.
    """

    def __init__(
        self, message: str, key: str = "", file: Path | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.issue = ConfigIssue(message, key, str(file) if file else None, line)


def read_env_file(path: Path, scope: Mapping[str, str]) -> dict[str, str]:
    """Read a file of variables; later lines may refer to earlier ones.

    Values may be quoted, and then span lines. In single quotes nothing is replaced; in double
    quotes a backslash escapes, and ``\\n`` is a line break.

    Args:
        path: the file.
        scope: variables that ``${VAR}`` may refer to.

    Raises:
        EnvProblem: the file can't be read or is malformed, or refers to what is not set.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise EnvProblem("is not UTF-8 text", file=path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise EnvProblem(f"can't be read: {reason}", file=path) from None
    values: dict[str, str] = {}
    for line, name, value in _assignments(path, text):
        try:
            values[name] = _resolved(value, {**scope, **values})
        except KeyError as missing:
            message = f"refers to {missing.args[0]}, which is not set"
            raise EnvProblem(message, name, path, line) from None
    return values


def expanded_argument(name: str, value: str, scope: Mapping[str, str]) -> str:
    """Give the value of a ``KEY=VALUE`` argument: quotes around all of it taken off."""
    quote = value[:1]
    quoted = len(value) >= 2 and quote in ("'", '"') and value.endswith(quote)
    inner = value[1:-1] if quoted else value
    if quoted and quote == "'":
        return inner
    try:
        return _PLAIN_MARK.sub(lambda mark: scope[mark["name"]], inner)
    except KeyError as missing:
        message = f"refers to {missing.args[0]}, which is not set"
        raise EnvProblem(message, name) from None


def _assignments(path: Path, text: str) -> Iterator[tuple[int, str, re.Match[str]]]:
    """Yield line, name and value of each assignment."""
    at = 0
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if at == len(text):
            return
        line = text.count("\n", 0, at) + 1
        start = _START.match(text, at)
        if start is None:
            raise EnvProblem("a line is written as KEY=VALUE", file=path, line=line)
        value = _VALUE.match(text, start.end())
        end = value and _END.match(text, value.end())
        if value is None or end is None:
            raise EnvProblem("has a value with unbalanced quotes", start[1], path, line)
        at = end.end()
        yield line, start[1], value


def _resolved(value: re.Match[str], scope: Mapping[str, str]) -> str:
    """The value of an assignment; `KeyError` names a variable that is not set."""
    literal, quoted, plain = value["literal"], value["quoted"], value["plain"]
    if literal is not None:
        return literal
    if quoted is None:
        return _PLAIN_MARK.sub(lambda mark: scope[mark["name"]], plain.strip())

    def replacement(mark: re.Match[str]) -> str:
        escaped = mark["escaped"]
        return scope[mark["name"]] if escaped is None else _ESCAPES.get(escaped, escaped)

    return _QUOTED_MARK.sub(replacement, quoted)
