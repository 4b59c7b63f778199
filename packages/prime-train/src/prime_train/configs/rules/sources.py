"""Rules of groups of sources. Follow the page "prime-rl/configuration", "Environments"."""

from __future__ import annotations

from prime_train.configs.rules.findings import Findings, hint, refusal
from prime_train.configs.sections.sources import EvalGroup, Source, TrainGroup
from prime_train.configs.values import KeyPath

__all__ = ["group_findings"]


def group_findings(group: TrainGroup | EvalGroup, path: KeyPath) -> Findings:
    """Yield names that two sources share, and what a group can't give its sources."""
    environment = group.env
    if environment is not None:
        if environment.taskset is not None and environment.taskset.id is not None:
            yield hint((*path, "env", "taskset", "id"), "ids stay on each source")
        if environment.agent is not None:
            yield hint((*path, "env", "agent"), "agents stay on each source")
    seen: set[str] = set()
    sources: list[Source] = [*(group.source or [])]
    for index, source in enumerate(sources):
        name = _name(source)
        if name in seen:
            message = "an earlier source of the group has the same name; set another name"
            yield refusal((*path, "source", index, "name"), message)
        elif name is not None:
            seen.add(name)


def _name(source: Source) -> str | None:
    """A source's name; without one, its taskset's id."""
    if source.name is not None:
        return source.name
    taskset = source.env.taskset if source.env is not None else None
    return taskset.id if taskset is not None else None
