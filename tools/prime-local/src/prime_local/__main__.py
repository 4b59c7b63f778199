"""`python -m prime_local` is the command `prime-local`."""

from __future__ import annotations

import sys

from prime_local.cli import main

if __name__ == "__main__":
    sys.exit(main())
