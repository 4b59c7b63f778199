"""Shapes that a dispatch refuses whatever else the config says.

They are looked for in the raw table, since their types are wrong too, and the reason helps more
than the type. Follows the pages "hosted-training/hosted-rl" and
"hosted-training/shared-lora-retired".
"""

from __future__ import annotations

from collections.abc import Iterator

from prime_train.configs.composition import Composition
from prime_train.configs.values import KeyPath, Table, look_up, with_nulls
from prime_train.errors import ConfigIssue

__all__ = ["migrate", "removed_shapes"]

_FORGOTTEN = ("trajectory_strategy", "trajectoryStrategy", "buffer")


def removed_shapes(composition: Composition) -> list[ConfigIssue]:
    """Find shapes that were removed or that hosted runs do not have."""
    table = with_nulls(composition.table)
    return [composition.issue(path, message) for path, message in _removed(table)]


def _removed(table: Table) -> Iterator[tuple[KeyPath, str]]:
    retired = "is the retired shared LoRA format"
    if isinstance(table.get("model"), str):
        yield ("model",), f'{retired}; write [model] with name = "..."'
    if isinstance(table.get("env"), list):
        yield ("env",), f"{retired}; write [[orchestrator.train.source]] tables"
    for group in (("orchestrator", "train"), ("orchestrator", "eval"), ("eval",)):
        environments, steps = look_up(table, (*group, "env"))
        if steps > len(group) and isinstance(environments, list):
            name = ".".join(group)
            message = f"is the removed flat shape; write [[{name}.source]] tables with an env table"
            yield (*group, "env"), message
    if table.get("k8s") is not None:
        yield ("k8s",), "hosted runs have no [k8s] table; remove it"
    if table.get("clean") is True:
        yield ("clean",), "hosted runs can't wipe their folder first; remove it"
    path = ("inference", "deployment", "type")
    if look_up(table, path) == ("disaggregated", len(path)):
        yield path, "hosted runs do not split prefill and decode; use another type"


def migrate(composition: Composition) -> tuple[Composition, list[ConfigIssue]]:
    """Drop and translate the old keys below `[orchestrator]`; say so."""
    old = composition.table.get("orchestrator")
    if not isinstance(old, dict):
        return composition, []
    orchestrator: Table = {key: value for key, value in old.items() if key not in _FORGOTTEN}
    issues = [
        composition.issue(("orchestrator", key), "no longer exists; it is left out", error=False)
        for key in old
        if key in _FORGOTTEN
    ]
    group = orchestrator.get("eval")
    if isinstance(group, dict) and "eval_base_model" in group:
        path = ("orchestrator", "eval", "eval_base_model")
        issues.append(composition.issue(path, "is now skip_first_step, inverted", error=False))
        rest = {key: value for key, value in group.items() if key != "eval_base_model"}
        if isinstance(base := group["eval_base_model"], bool):
            rest.setdefault("skip_first_step", not base)
        orchestrator["eval"] = rest
    return composition.replaced("orchestrator", orchestrator), issues
