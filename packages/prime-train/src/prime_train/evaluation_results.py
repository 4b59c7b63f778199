"""A folder with the results of an evaluation, as verifiers writes it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.trace_samples import nested, samples_of_episode

__all__ = ["EvaluationResults", "read_results"]

_LEGACY, _EPISODES, _METADATA = "results.jsonl", "traces.jsonl", "metadata.json"
# Figures of the whole run, which the platform shows by themselves.
_FIGURES = ("avg_reward", "avg_metrics", "avg_error")


@dataclass(frozen=True)
class EvaluationResults:
    """What a folder holds.

    Attributes:
        path: the file with the samples.
        episodes: whether its lines are episodes of verifiers v1.
        metadata: what the run says about itself.
        environment: name or slug of the environment, if the run names one.
        model_name: the model, likewise.
        metrics: figures of the whole run.
    """

    path: Path
    episodes: bool
    metadata: dict[str, Any]
    environment: str | None
    model_name: str | None
    metrics: dict[str, Any] | None

    def samples(self) -> Iterator[dict[str, Any]]:
        """The samples, a line of the file at a time; it blocks.

        Raises:
            ValueError: a line is no JSON object; it names the line.
        """
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.isspace():
                    continue
                row = _object(line, f"{self.path}, line {number}")
                if self.episodes:
                    yield from samples_of_episode(row)
                else:
                    yield row


def read_results(folder: str | os.PathLike[str]) -> EvaluationResults:
    """Looks at a folder; it blocks, and reads no samples but the first.

    Args:
        folder: with ``results.jsonl`` and ``metadata.json``, as ``vf-eval`` saves them, or with
            the ``traces.jsonl`` of verifiers v1.

    Raises:
        FileNotFoundError: it has neither file.
        ValueError: one of them can't be read.
    """
    root = Path(folder)
    metadata: dict[str, Any] = {}
    if (root / _METADATA).is_file():
        text = (root / _METADATA).read_text(encoding="utf-8")
        metadata = _object(text, str(root / _METADATA))
    if (root / _LEGACY).is_file():
        metrics = {name: metadata[name] for name in _FIGURES if metadata.get(name) is not None}
        return EvaluationResults(
            root / _LEGACY,
            episodes=False,
            metadata=metadata,
            environment=_text(metadata, "env_id", "env"),
            model_name=_text(metadata, "model"),
            metrics=metrics or None,
        )
    if not (root / _EPISODES).is_file():
        raise FileNotFoundError(f"{root} holds neither {_LEGACY} nor {_EPISODES}")
    with open(root / _EPISODES, encoding="utf-8") as file:
        line = next((line for line in file if not line.isspace()), None)
    first = {} if line is None else _object(line, f"{root / _EPISODES}, line 1")
    traces = [each for each in first.get("traces") or () if isinstance(each, Mapping)]
    config = nested(traces[0], "agent", "config") if traces else {}
    return EvaluationResults(
        root / _EPISODES,
        episodes=True,
        metadata=metadata,
        environment=_text(metadata, "env_id", "env") or _text(nested(first, "env"), "id", "name"),
        model_name=_text(metadata, "model") or _text(config, "model"),
        metrics=None,
    )


def _text(data: Mapping[str, Any], *names: str) -> str | None:
    return next((data[name] for name in names if isinstance(data.get(name), str)), None)


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: no JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{where}: no JSON object")
    return data
