"""Sources of training and evaluation, and the defaults that their groups give them.

Follows the page "prime-rl/configuration", "Environments", and "verifiers/v1/tasksets".
"""

from __future__ import annotations

from typing import Annotated

from prime_train.configs.sections.algorithms import Algorithm
from prime_train.configs.sections.base import Count, Known, OpenSection, Section

__all__ = [
    "Agent",
    "Curriculum",
    "Environment",
    "EnvironmentTimeouts",
    "EvalGroup",
    "EvalSource",
    "Harness",
    "Retries",
    "RetryRule",
    "Runtime",
    "Sampling",
    "Select",
    "Serve",
    "Source",
    "SourceGroup",
    "TaskChoice",
    "Taskset",
    "TrainGroup",
    "TrainSource",
]


class Sampling(OpenSection):
    """`sampling`: how the model samples; further keys go to the endpoint.

    Attributes:
        temperature: 0 and up.
        top_p: share of probability that is sampled from; below 1 truncates.
        top_k: tokens that are sampled from; training takes at most 512.
        max_tokens: tokens of a turn; the same as `max_completion_tokens`.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, object] | None = None
    extra_body: dict[str, object] | None = None


class TaskChoice(Section):
    """`select.include` and `select.exclude`: tasks by index or slice, id, key or name."""

    idx: list[int | str] | None = None
    ids: list[int | str] | None = None
    keys: list[str] | None = None
    names: list[str] | None = None


class Select(Section):
    """`select`: which tasks run; chosen, shuffled, skipped and limited in that order."""

    include: TaskChoice | None = None
    exclude: TaskChoice | None = None
    shuffle: bool | None = None
    skip: Count | None = None
    limit: Count | None = None


class Taskset(OpenSection):
    """`env.taskset`: the tasks; further keys are the taskset's own."""

    id: str | None = None
    split: str | None = None
    task: dict[str, object] | None = None
    system_prompt: str | None = None


class Harness(OpenSection):
    """`env.<role>.harness`: the program that drives the model; further keys are its own."""

    id: str | None = None


class Runtime(OpenSection):
    """`env.<role>.runtime`: where that program runs; further keys are the runtime's own."""

    type: (
        Annotated[
            str,
            Known("subprocess", "docker", "podman", "apptainer", "prime", "modal", "e2b"),
        ]
        | None
    ) = None


class Agent(OpenSection):
    """`env.agent`, or a role of an environment with several agents.

    Attributes:
        timeout: seconds.
    """

    harness: Harness | None = None
    runtime: Runtime | None = None
    max_turns: Count | None = None
    timeout: float | OpenSection | None = None
    max_output_tokens: Count | None = None
    model: str | OpenSection | None = None
    sampling: Sampling | None = None


class RetryRule(Section):
    """`env.retries.rules`: how often one kind of error is tried again."""

    type: str | None = None
    max_retries: Count | None = None


class Retries(OpenSection):
    """`env.retries`."""

    rules: list[RetryRule] | None = None
    max_retries: Count | None = None


class EnvironmentTimeouts(OpenSection):
    """`env.timeout`: seconds."""

    episode: float | None = None


class Environment(OpenSection):
    """`env`: tasks and agents; further keys are roles or settings of the environment."""

    id: str | None = None
    taskset: Taskset | None = None
    agent: Agent | None = None
    retries: Retries | None = None
    timeout: EnvironmentTimeouts | None = None
    max_concurrent_agents: Count | None = None
    interception: bool | OpenSection | None = None


class Serve(OpenSection):
    """`serve`: the server of a source that is managed elsewhere, or its pool."""

    address: str | None = None


class Curriculum(Section):
    """`curriculum`: which tasks come next, and which groups train; both by their `type`."""

    sampler: OpenSection | None = None
    gates: dict[str, OpenSection] | None = None


class Source(Section):
    """What sources of training and of evaluation have in common.

    Attributes:
        name: unique in its group; the taskset's id when it is not set.
        args: arguments of an environment of verifiers 0.
    """

    name: str | None = None
    env: Environment | None = None
    sampling: Sampling | None = None
    select: Select | None = None
    group_size: Count | None = None
    serve: Serve | None = None
    args: dict[str, object] | None = None


class TrainSource(Source):
    """`[[orchestrator.train.source]]`.

    Attributes:
        ratio: weight of this source against the others.
    """

    ratio: float | None = 1.0
    algo: Algorithm | None = None
    curriculum: Curriculum | None = None


class EvalSource(Source):
    """`[[orchestrator.eval.source]]`, or `[[eval.source]]` of SFT.

    Attributes:
        interval: evaluate every so many steps.
    """

    interval: Count | None = None


class SourceGroup(Section):
    """Defaults of a group's sources: each source takes what it does not set itself."""

    env: Environment | None = None
    sampling: Sampling | None = None
    select: Select | None = None
    group_size: Count | None = None


class TrainGroup(SourceGroup):
    """`[orchestrator.train]`."""

    algo: Algorithm | None = None
    source: list[TrainSource] | None = None


class EvalGroup(SourceGroup):
    """`[orchestrator.eval]`.

    Attributes:
        interval: evaluate every so many steps.
        skip_first_step: leave out the evaluation of the model as it comes.
    """

    interval: Count | None = 100
    skip_first_step: bool | None = None
    source: list[EvalSource] | None = None
