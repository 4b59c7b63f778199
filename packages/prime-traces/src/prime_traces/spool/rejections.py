"""What to do with a batch that the platform refused."""

from __future__ import annotations

from dataclasses import dataclass

from prime_core.errors import APIError
from prime_traces.errors import LineFormatConflictError, named_line

__all__ = ["Cut", "cut_for"]

# What is wrong with a line only because of another one.
_DUPLICATES = frozenset({"duplicate_trace_id", "duplicate_episode_id"})
# What smaller batches cure, or which line it is about, they show.
_OF_LINES = _DUPLICATES | {
    "created_at_out_of_window",
    "environment_id_too_long",
    "episode_id_too_long",
    "invalid_trace",
    "line_format_mismatch",
    "too_many_traces_in_episode",
    "too_many_traces_in_upload",
    "trace_too_large",
    "unknown_episode_reference",
    "upload_too_large",
}
# What no line is to blame for, and no change of them cures.
_OF_ALL = frozenset({"invalid_metadata", "unsupported_schema_version"})
_TOO_LARGE = 413


@dataclass(frozen=True)
class Cut:
    """How a refused batch goes on.

    Attributes:
        groups: the lines of each new batch, from 0, in order.
        rejected: the lines that are set aside.
    """

    groups: tuple[range, ...]
    rejected: range


def cut_for(error: APIError, count: int) -> Cut | None:
    """How a batch of so many lines goes on after this error.

    A batch is also halved, whatever line is named: were a thousand lines bad, each refusal
    would else send nearly all of it again.

    Returns:
        None when the lines are not to blame, and waiting may help.
    """
    if isinstance(error, LineFormatConflictError) or error.code in _OF_ALL:
        return Cut((), range(count))
    too_large = error.status_code == _TOO_LARGE
    # A refusal without a code is not the service's, but of something before it.
    if not too_large and (error.status_code not in (400, 422) or error.code is None):
        return None
    borders = {0, count // 2, count}
    rejected = range(0)
    named = named_line(str(error.args[0]) if error.args else "")
    line = int(named[1]) - 1 if named else -1
    if 0 <= line < count:
        borders.add(line)
        # The first of two with one id is good, and so is the second, in a batch of its own.
        if error.code not in _DUPLICATES or line == 0:
            borders.add(line + 1)
            rejected = range(line, line + 1)
    elif error.code not in _OF_LINES and not too_large:
        return None
    elif count == 1:
        rejected = range(1)
    groups = map(range, sorted(borders), sorted(borders)[1:])
    return Cut(tuple(group for group in groups if group != rejected), rejected)
