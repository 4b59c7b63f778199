"""The TOML parser of the standard library, or its twin on Python 3.10."""

from __future__ import annotations

import re
import sys
from typing import cast

from prime_train.configs.values import Table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["TomlError", "parse_toml"]

_LINE = re.compile(r"\(at line (\d+), column \d+\)")


class TomlError(ValueError):
    """A text is not TOML, or a config nested beyond reason.

    Attributes:
        line: where, from 1; `None` at the end of the text.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse_toml(text: str) -> Table:
    """Parse a TOML text, or raise `TomlError`."""
    try:
        return cast(Table, tomllib.loads(text))
    except RecursionError:
        raise TomlError("is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        # Without a cause: newer parsers keep the whole text, secrets and all, in their error.
        line = _LINE.search(str(error))
        raise TomlError(f"is not TOML: {error}", int(line[1]) if line else None) from None
