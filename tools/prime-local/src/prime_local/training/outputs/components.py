"""The parts of a run that log, and the pods that they are."""

from __future__ import annotations

from dataclasses import dataclass

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.training.outputs.figures import env_names
from prime_local.training.runs.admission import table
from prime_local.training.runs.record import Run

ENV_SERVER = "env-server"


@dataclass(frozen=True)
class Component:
    """A pod of a run.

    Args:
        name: the kind of pod, by the names of the contract.
        index: which of its replicas.
        env_name: the environment that it serves, if it serves one.
    """

    name: str
    index: int = 0
    env_name: str | None = None


def primary(run: Run) -> str:
    """Return the component whose log stays when the pods are gone."""
    return "trainer" if run.mode == "sft" else "orchestrator"


def pick(
    run: Run, name: str | None = None, pod_index: int | None = None, env_name: str | None = None
) -> Component:
    """Return the component that is meant.

    Raises:
        PlatformError: 400 or 404.
    """
    name = name or primary(run)
    if name == ENV_SERVER and not env_name:
        raise PlatformError(400, "env_name is required for the component env-server")
    if name == ENV_SERVER and env_name not in env_names(run):
        raise PlatformError(404, f"The run has no environment server for {env_name!r}")
    index = pod_index or 0
    if index >= _replicas(run, name):
        raise PlatformError(404, f"The run has no pod {index} of the component {name}")
    return Component(name, index, env_name if name == ENV_SERVER else None)


def env_servers(run: Run) -> list[JsonObject]:
    """Return the `EnvServer` objects of the contract, as far as they run."""
    if not run.status.trains:
        return []
    return [
        {
            "env_name": name,
            "env_index": 0,
            "pod_name": f"rft-env-{name.replace('/', '-')}-0",
            "status": "Running",
        }
        for name in env_names(run)
    ]


def _replicas(run: Run, name: str) -> int:
    """Return how many pods of a component there are; none of what the run does without."""
    deployment = table(run.config, "deployment") or {}
    several = deployment.get("type") == "multi_node"
    if name == "trainer":
        return int(deployment.get("num_train_nodes", 1)) if several else 1
    serves = run.mode == "rl" or table(run.config, "eval") is not None
    if name != "inference":
        return int(serves)
    return int(deployment.get("num_infer_replicas", 1)) if several and serves else int(serves)
