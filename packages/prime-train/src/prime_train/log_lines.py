"""Reading single lines of a run's log."""

from __future__ import annotations

import re

from pydantic import ValidationError as InvalidData
from typing_extensions import Self

from prime_train.models.run_logs import LogLevel, LogLine

__all__ = ["LogGap", "parse_log_line"]

# What the platform and libraries put in front: [adminlog], [rank0]:, (EngineCore pid=77).
_PREFIX = re.compile(r"(?:\[adminlog\]|\[rank\d+\]:|\([^()]* pid=\d+\))\s*")
# A bar as it is drawn: a percentage and a stroke, somewhere behind what it is about.
_BAR = re.compile(r"(?<![\d.])(\d{1,3})%\|")
_FULL = 100


class LogGap(str):
    """Stands in a followed log where lines may be missing, and says why.

    More than 5000 lines came between two looks, or the log was gone. It is a text like any other
    line, and a warning to `parse_log_line`.

    Args:
        reason: why.
    """

    __slots__ = ()

    def __new__(cls, reason: str) -> Self:
        return super().__new__(cls, reason)


def parse_log_line(line: str) -> LogLine:
    """Reads a line of a run's log: its text, its time, its level.

    A line may be JSON, or text behind prefixes such as ``[rank0]:``. Of a progress bar that was
    drawn over and over, the last state counts. Whatever a line is, it becomes a `LogLine`.

    Args:
        line: as `get_logs` and `follow_logs` give it.
    """
    if isinstance(line, LogGap):
        return LogLine(message=line, level=LogLevel.WARNING)
    text = _without_prefixes(line.rstrip("\r\n").rpartition("\r")[2])
    if text.startswith("{"):
        try:
            found = LogLine.model_validate_json(text)
        except InvalidData:
            pass
        else:
            found.is_progress = found.type == "progress" or _is_unfinished(found.message)
            return found
    return LogLine(message=text, is_progress=_is_unfinished(text))


def _without_prefixes(text: str) -> str:
    while found := _PREFIX.match(text):
        text = text[found.end() :]
    return text


def _is_unfinished(text: str) -> bool:
    bars = _BAR.findall(text)
    return bool(bars) and int(bars[-1]) < _FULL
