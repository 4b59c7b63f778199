"""The lines of logs. Some are JSON, some plain text; some repeat, and have no time in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache

from prime_local.training.outputs import figures
from prime_local.training.outputs.components import Component
from prime_local.training.runs.record import Run, Status
from prime_local.training.runs.wire import date

_BAR = 20
_SERVERS = 7


@dataclass(frozen=True)
class Line:
    """A line of a log; a plain one may have no level."""

    level: str | None
    text: str


def opening(run: Run, component: Component, at: float, step: int) -> list[Line]:
    """Return what a pod logs when it is there."""
    begin = "from the beginning" if not step else f"from step {step} on"
    return [
        _json(at, "WARNING", "Training is simulated by prime-local: no model is trained"),
        _json(at, "INFO", f"Run {run.id} on {run.gpus} x {run.gpu_type}, {component.name} is up"),
        _json(at, "INFO", f"Model {run.model}, {run.mode.upper()} {begin}"),
    ]


def closing(run: Run, at: float) -> list[Line]:
    """Return what is logged last."""
    if run.status is Status.COMPLETED:
        return [_json(at, "SUCCESS", f"Training finished after {run.timeline[-1].step} steps")]
    if run.status is Status.FAILED:
        reason = run.error_message or "unknown"
        trace = f"RuntimeError: {reason}"
        return [_json(at, "ERROR", f"Training failed: {reason}", exception=trace)]
    if run.status is Status.PAUSED:
        return [_json(at, "SUCCESS", f"Paused after step {run.timeline[-1].step}")]
    return [_json(at, "INFO", f"Training stopped after step {run.timeline[-1].step}")]


def body(run: Run, component: Component, at: float, step: int, slot: int) -> Line:
    """Return a line of a step.

    Args:
        run: the run.
        component: what logs it.
        at: when, in the platform's seconds since 1970.
        step: the step, from 1.
        slot: which line of that step, from 0; the last one sums it up.
    """
    if slot == run.log_lines - 1:
        return _json(at, "SUCCESS", _summary(run, component, step), tag="step")
    if component.name == "inference":
        return _inference(run, at, step, slot)
    if component.name == "trainer":
        return _trainer(run, at, step, slot)
    return _orchestrator(run, at, step, slot)


def _summary(run: Run, component: Component, step: int) -> str:
    figure = f"Loss {figures.loss(run, step):.4f} | Entropy {figures.entropy(run, step):.4f}"
    if run.mode == "rl" and component.name == "orchestrator":
        reward = figures.mean_reward(run, step)
        return f"Step {step} | Time {run.step_seconds:.2f}s | Reward {reward:.4f} | {figure}"
    speed = figures.throughput(run, step)
    return f"Step {step} | Time {run.step_seconds:.2f}s | {figure} | {speed:.0f} tokens/s"


def _orchestrator(run: Run, at: float, step: int, slot: int) -> Line:
    kind = slot % 8
    done = f"{slot + 1} of {run.log_lines}"
    if kind == 0:
        return _json(at, "INFO", f"Step {step}: {done}", type="progress")
    if kind in (3, 4):
        return Line(None, "Waiting for rollouts")
    if kind == 5:
        return _json(at, "DEBUG", f"Step {step}: weights have reached the inference servers")
    if kind == 7 and figures.chance(run.id, step, slot) < 0.25:
        return _json(at, "WARNING", f"Step {step}: an environment server is slow ({done})")
    return _json(at, "INFO", f"Step {step}: rollout {done} is scored", tag="rollout")


def _trainer(run: Run, at: float, step: int, slot: int) -> Line:
    kind = slot % 6
    if kind in (0, 1):
        return Line(None, f"[rank0]: {_bar(slot + 1, run.log_lines)}")
    if kind == 2:
        return Line(None, "[rank0]: torch.cuda.empty_cache() was called")
    if kind == 3:
        return _json(at, "DEBUG", f"Step {step}: gradient norm {figures.gradient(run, step)}")
    return _json(at, "INFO", f"Step {step}: micro batch {slot + 1} of {run.log_lines}")


def _inference(run: Run, at: float, step: int, slot: int) -> Line:
    kind = slot % 5
    if kind < 3:
        return Line(None, "(APIServer pid=12) POST /v1/chat/completions 200")
    if kind == 3:
        running = int(_SERVERS * figures.chance(run.id, step, slot))
        return Line(None, f"(EngineCore_DP0 pid=77) {date(at)} {running} requests are running")
    return _json(at, "INFO", f"Step {step}: {figures.throughput(run, step):.1f} tokens/s")


def _bar(done: int, whole: int) -> str:
    full = _BAR * done // whole
    return f"Step: {100 * done // whole:3d}%|{'#' * full}{' ' * (_BAR - full)}| {done}/{whole}"


def _json(at: float, level: str, message: str, **more: str) -> Line:
    # By hand, which takes a fifth of the time: a window has thousands of them.
    others = "".join(f',"{name}":{json.dumps(value)}' for name, value in more.items())
    stamp = f"{_second(int(at))}.{int(at % 1 * 1000):03d}Z"
    head = f'{{"timestamp":"{stamp}","level":"{level}"'
    return Line(level, f'{head},"message":{json.dumps(message)}{others}}}')


@lru_cache(maxsize=64)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
