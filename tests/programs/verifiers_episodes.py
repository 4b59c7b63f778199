"""Writes episodes as a run of verifiers does, and single traces; prints what they hold as JSON.

    python verifiers_episodes.py FOLDER

`traces.jsonl` comes from the package's own writer, `records.jsonl` from its `to_record()`. Runs in
an environment that holds verifiers, not our packages.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.graph import prepare_turn
from verifiers.v1.utils.trace_store import append_episode

MODEL = "acme/solver-8b"
SEARCH = vf.Tool(name="search", description="Looks a word up", parameters={"type": "object"})


class Ladder(vf.Task[vf.TaskData, vf.State]):  # type: ignore[misc]  # not installed here
    """A task without behaviour."""


def task_of(name: str) -> vf.TraceTask[vf.TaskData]:
    task = Ladder(vf.TaskData(idx=0, name=name, prompt="From cold to warm, Café \N{GRINNING FACE}"))
    return vf.TraceTask(type="Ladder", data=task.data, key=task.key, hash=task.hash)


def begun(task: vf.TraceTask[vf.TaskData], name: str, trainable: bool = True) -> vf.Trace[Any]:
    config = vf.AgentConfig(
        model=MODEL,
        client=vf.EvalClientConfig(base_url="https://api.pinference.ai/api/v1"),
        runtime=vf.SubprocessConfig(),
        max_turns=4,
    )
    agent = vf.AgentInfo(config=config, name=name, trainable=trainable)
    return vf.Trace(task=task, agent=agent)


def turn(trace: vf.Trace[Any], prompt: list[Any], message: vf.AssistantMessage) -> None:
    """One exchange with a model, with its tokens."""
    number = len(trace.calls)
    reason = "tool_calls" if message.tool_calls else "stop"
    usage = vf.Usage(prompt_tokens=20 * (number + 1), completion_tokens=5, cached_input_tokens=3)
    before = trace.branches[-1].token_ids if trace.nodes else []
    tokens = vf.TurnTokens(
        prompt_ids=[*before, *range(20)],
        completion_ids=[101, 102, 103],
        completion_logprobs=[-0.123456789, -1e-07, -2.5],
    )
    response = vf.Response(
        id=f"response-{number}",
        created=int(time.time()),
        model=MODEL,
        message=message,
        finish_reason=reason,
        usage=usage,
        tokens=tokens,
    )
    node = prepare_turn(trace, prompt, [SEARCH]).commit(response)
    now = time.time()
    trace.calls.append(
        vf.ModelCall(
            node=node,
            model=MODEL,
            sampling=vf.SamplingConfig(temperature=0.7),
            endpoint="/chat/completions",
            finish_reason=reason,
            usage=usage,
            time=vf.TimeSpan(start=now - 1, end=now),
        )
    )


def solved(task: vf.TraceTask[vf.TaskData]) -> vf.Trace[Any]:
    """Two turns with a tool between them, scored."""
    trace = begun(task, "solver")
    prompt: list[Any] = [
        vf.SystemMessage(content="You climb word ladders."),
        vf.UserMessage(content=task.data.prompt),
    ]
    call = vf.ToolCall(id="call-1", name="search", arguments='{"word": "cold"}')
    looked_up = vf.AssistantMessage(content=None, reasoning_content="Look up", tool_calls=[call])
    turn(trace, prompt, looked_up)
    found = [vf.TextContentPart(text="cold, cord\u2028card")]
    prompt = [*prompt, looked_up, vf.ToolMessage(content=found, tool_call_id="call-1")]
    turn(trace, prompt, vf.AssistantMessage(content="cold, cord, card, ward, warm"))
    trace.record_reward("solved", 1.0)
    trace.record_reward("short", 0.25, weight=0.5)
    trace.record_metric("turns", 2)
    trace.info["notes"] = {"seed": 2**63, "ratio": 1 / 3, "text": "\x1b[1m\x00"}
    trace.ok = True
    trace.stop("agent_completed")
    return ended(trace)


def failed(task: vf.TraceTask[vf.TaskData]) -> vf.Trace[Any]:
    """One turn, then an error."""
    trace = begun(task, "judge", trainable=False)
    turn(trace, [vf.UserMessage(content="Is it right?")], vf.AssistantMessage(content="Perhaps"))
    trace.rewards["right"] = None
    trace.record_error(vf.SandboxError("the sandbox is gone"))
    return ended(trace)


def ended(trace: vf.Trace[Any]) -> vf.Trace[Any]:
    start = trace.timing.start
    trace.timing.agent = vf.AgentSpan(start=start, end=start + 2)
    trace.timing.scoring = vf.TimeSpan(start=start + 2, end=start + 2.5)
    return trace


def episodes() -> list[vf.Episode[Any]]:
    both, alone, empty = task_of("both"), task_of("alone"), task_of("empty")
    env = vf.EnvInfo(id="word-ladder", name="ladders")
    work = vf.TrainWorkInfo(step=12, policy=vf.PolicySpan(start=11, end=12))
    run = vf.TrainRunInfo(id="run-verifiers", name="nightly", work=work)
    error = vf.Error(type="TaskError", message="nothing to climb", traceback="Traceback …")
    found = [
        vf.Episode(env=env, task=both, traces=[solved(both), failed(both)], ok=True),
        vf.Episode(env=env, task=alone, traces=[solved(alone)], ok=True),
        vf.Episode(env=env, task=empty, errors=[error]),
    ]
    for episode in found:
        episode.group = vf.GroupInfo(id="group-1")
        episode.record_run(run)
    return found


def held(trace: vf.Trace[Any]) -> dict[str, object]:
    """What a trace holds, in the producer's own words."""
    return {
        "reward": trace.reward if any(trace.rewards.values()) else None,
        "has_error": trace.has_error,
        "is_truncated": trace.is_truncated,
        "total_tokens": sum(branch.num_total_tokens for branch in trace.branches),
        "agent": trace.agent.name,
        "nodes": len(trace.nodes),
        "calls": len(trace.calls),
    }


async def main(folder: Path) -> None:
    made = episodes()
    lock = asyncio.Lock()
    for episode in made:
        await append_episode(folder, episode, lock)
    records = [solved(task_of("single")), failed(task_of("single"))]
    lines = [json.dumps(trace.to_record()).encode() + b"\n" for trace in records]
    await asyncio.to_thread((folder / "records.jsonl").write_bytes, b"".join(lines))
    traces = [*records, *(trace for episode in made for trace in episode.traces)]
    print(json.dumps({trace.id: held(trace) for trace in traces}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
