"""The code blocks of Markdown texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Blocks may be indented or quoted.
FENCE = re.compile(r"(?P<margin>[ \t>]*)(?P<ticks>```+)[ \t]*(?P<language>\w*)")


def python_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield page and code of each Python block of a text; the page is where `Source:` says."""
    return code_blocks(text, "python", "py")


def code_blocks(text: str, *languages: str) -> Iterator[tuple[str, str]]:
    """Yield page and code of each block of a text in one of the languages."""
    page = margin = ticks = language = ""
    block: list[str] = []
    for line in text.splitlines():
        fence = FENCE.match(line)
        if ticks:
            if fence is not None and re.fullmatch(f"{ticks}`*", line.strip(" \t>")):
                if language in languages:
                    yield page, "".join(f"{line}\n" for line in block)
                ticks = ""
            else:
                # A quoted line that is empty has no blank after its mark.
                block.append(line.removeprefix(margin) if line != margin.rstrip() else "")
        elif fence is not None:
            margin, ticks, language = fence.group("margin", "ticks", "language")
            block = []
        elif line.startswith("Source: "):
            page = line.partition("://")[2].partition("/")[2]
