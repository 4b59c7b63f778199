"""What tools show of an error, for tests that something does not show."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

__all__ = ["shown"]


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if error.__cause__ is not None and error.__context__ is not error.__cause__:
            yield from chain(error.__cause__)
        error = error.__context__


def shown(error: BaseException, own: str) -> Iterator[str]:
    """All that tools print of an error: texts, and the variables of each frame.

    Args:
        error: it and all that it is chained to.
        own: the test's file or folder, whose frames know what must not be shown.
    """
    for link in chain(error):
        yield from (str(link), repr(link), repr(link.args), repr(vars(link)))
        for frame, _ in traceback.walk_tb(link.__traceback__):
            if not frame.f_code.co_filename.startswith(own):
                yield from (f"{name} = {value!r}" for name, value in frame.f_locals.items())
