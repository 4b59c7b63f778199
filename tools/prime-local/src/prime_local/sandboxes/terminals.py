"""What a process reads: nothing, a pipe, or a terminal that it writes to as well."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

_LARGEST = 0xFFFF


@dataclass(frozen=True)
class TerminalSize:
    """The size of a terminal in characters; 0 where it is not known."""

    columns: int
    rows: int

    def apply(self, descriptor: int) -> None:
        """Set the size of a terminal; the programs in it are told.

        Raises:
            OSError: it is gone.
        """
        rows, columns = min(self.rows, _LARGEST), min(self.columns, _LARGEST)
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def open(self) -> tuple[int, int]:
        """Make a terminal; returns its outer and its inner descriptor.

        Raises:
            OSError: there are no more.
        """
        outer, inner = os.openpty()
        self.apply(inner)
        return outer, inner

    def spawn(
        self, script: str, argv: Sequence[str], directory: Path, environment: Mapping[str, str]
    ) -> tuple[subprocess.Popen[bytes], int]:
        """Start a shell script with arguments in a terminal of its own.

        Returns the process and the outer descriptor.

        Raises:
            OSError: it could not be started.
        """
        outer, inner = self.open()
        try:
            process = subprocess.Popen(
                # Whoever leads a session without a terminal gets the one that it opens.
                ["/bin/sh", "-c", f'exec <>"$0" >&0 2>&0\n{script}', os.ttyname(inner), *argv],
                cwd=directory,
                env=environment,
                stdin=inner,
                stdout=inner,
                stderr=inner,
                start_new_session=True,
            )
        except BaseException:
            os.close(outer)
            raise
        finally:
            os.close(inner)
        return process, outer


Stdin: TypeAlias = Literal["none", "pipe"] | TerminalSize
