"""What delivers a run's records and figures; each process of a run has its own."""

from __future__ import annotations

import asyncio

from prime_core._async.api_client import AsyncAPIClient
from prime_traces._async.api_client import USER_AGENT, AsyncTracesAPIClient
from prime_traces.runs.control import ControlPlane
from prime_traces.runs.entries import Entry, EvaluationEntry, TrainingEntry
from prime_traces.runs.losses import Losses
from prime_traces.runs.outlet import Fallback, Outlet
from prime_traces.runs.settings import RunSettings
from prime_traces.runs.sinks import SamplesSink, TracesSink

__all__ = ["Equipment"]


class Equipment:
    """Connections, the run's entry at the platform and, once that is known, the outlets.

    Args:
        settings: what makes the run.
        losses: takes what could not be sent.
    """

    def __init__(self, settings: RunSettings, losses: Losses) -> None:
        self._settings = settings
        self._losses = losses
        client = AsyncAPIClient(config=settings.account, user_agent=USER_AGENT)
        self._control = ControlPlane(client, internal=settings.internal)
        self._api = AsyncTracesAPIClient(client=client)
        kind = EvaluationEntry if settings.kind == "eval" else TrainingEntry
        self.entry: Entry = kind(self._control, settings)
        context = {
            "source": "prime-runs",
            "run_type": settings.kind,
            "framework": settings.framework,
            "model": settings.model,
        }
        labels = {name: text for name, text in context.items() if text}
        self.traces = TracesSink(self._api, labels)

    def open(self) -> None:
        """Makes the outlets, for the run that the entry names."""
        settings, traces = self._settings, self.traces
        train = settings.kind == "train"
        samples = SamplesSink(self._control, self.entry.id)
        fallback = Fallback(samples, open=lambda: not traces.receipts)
        self.records = Outlet(
            samples if settings.opted_out else traces,
            self._losses.keep,
            reopens=train,
            fallback=None if train else fallback,
        )
        # A worker of their own: figures must not wait behind gigabytes of traces.
        self.metrics = Outlet(self.entry, self._losses.keep, reopens=train, joins=not train)

    async def drained(self) -> None:
        """Returns once everything that was put so far is sent, or kept unsent."""
        await asyncio.gather(self.records.drained(), self.metrics.drained())

    async def stop(self) -> None:
        """Ends the deliveries; what is left is kept unsent."""
        await asyncio.gather(self.records.stop(), self.metrics.stop())

    async def aclose(self) -> None:
        """Gives the connections back."""
        await self._control.aclose()
        await self._api.aclose()
