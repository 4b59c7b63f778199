"""What training runs cost: tokens that a test names, at fixed prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError

_TRAINING, _INPUT, _OUTPUT = Decimal("2.5"), Decimal("0.5"), Decimal("1.5")
_MILLION = 1_000_000


@dataclass(frozen=True)
class RunTokens:
    """The tokens of a training run.

    Args:
        training: trained on.
        input: read by inference.
        output: written by inference.
    """

    training: int = 0
    input: int = 0
    output: int = 0


@dataclass(frozen=True)
class RunTitle:
    """What a bill says of a run.

    Args:
        name: what its owner calls it.
        base_model: the model that it trains.
        status: its state.
    """

    name: str | None
    base_model: str | None
    status: str


class RunUsages:
    """Runs and their tokens."""

    def __init__(self) -> None:
        self._runs: dict[str, RunTokens] = {}
        self.title: Callable[[str], RunTitle | None] = lambda run_id: None
        """Knows hosted runs, which cost GPU-hours: no tokens, unless a test names some."""

    def put(self, run_id: str, tokens: RunTokens) -> None:
        """Note what a run has used so far."""
        self._runs[run_id] = tokens

    def to_wire(self, run_id: str) -> JsonObject:
        """Return the `RunUsage` object of the contract.

        Raises:
            PlatformError: 404.
        """
        tokens, title = self._runs.get(run_id), self.title(run_id)
        if title is None:
            title = RunTitle(run_id, None, "RUNNING")
            if tokens is None:
                raise PlatformError(404, "Run not found")
        tokens = tokens or RunTokens()
        training = tokens.training * _TRAINING / _MILLION
        inference = (tokens.input * _INPUT + tokens.output * _OUTPUT) / _MILLION
        return {
            "run_id": run_id,
            "run_name": title.name,
            "base_model": title.base_model,
            "status": title.status,
            "training": _usage(tokens.training, 0, 0, training),
            "inference": _usage(
                tokens.input + tokens.output, tokens.input, tokens.output, inference
            ),
            "total_tokens": tokens.training + tokens.input + tokens.output,
            "total_cost_usd": float(training + inference),
            "pricing": {
                "training_per_mtok": float(_TRAINING),
                "inference_input_per_mtok": float(_INPUT),
                "inference_output_per_mtok": float(_OUTPUT),
            },
            "record_count": 1,
        }


def _usage(tokens: int, read: int, written: int, cost: Decimal) -> JsonObject:
    return {
        "tokens": tokens,
        "input_tokens": read,
        "output_tokens": written,
        "cost_usd": float(cost),
    }
