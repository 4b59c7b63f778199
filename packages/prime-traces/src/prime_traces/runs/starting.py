"""How a program begins a run."""

from __future__ import annotations

from prime_traces._async.run_logging import AsyncRun
from prime_traces._sync.run_logging import Run

__all__ = ["async_init", "init"]

init = Run.init
async_init = AsyncRun.init
