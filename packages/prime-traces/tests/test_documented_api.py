"""The names, parameters and fields that the contract promises exist."""

from __future__ import annotations

import inspect
import json
from importlib.resources import files
from typing import Any

import pytest
from pydantic import BaseModel

import prime_traces

# Of the queries. What we may add: keyword parameters with a default, after the promised ones.
PROMISED = """
def list(
    self, *, run_id=None, upload_id=None, environment_id=None, model_id=None,
    model_provider=None, task_id=None, reward_min=None, reward_max=None, outcome=None,
    has_error=None, is_truncated=None, created_after=None, created_before=None, context=None,
    sort=None, limit=None, cursor=None,
): ...
def iter(self, **filters): ...
def get(self, trace_id): ...
def get_raw(self, trace_id): ...
def download_raw(self, trace_id, dest): ...
def list_nodes(
    self, trace_id, *, role=None, sampled=None, after=None, limit=None, cursor=None
): ...
def list_calls(self, trace_id, *, model=None, finish_reason=None, limit=None, cursor=None): ...
def delete(self, trace_id, *, created_at=None): ...
def delete_run(self, run_id): ...
def list_episodes(
    self, *, run_id=None, upload_id=None, environment_id=None, outcome=None, has_error=None,
    run_step=None, step_min=None, step_max=None, created_after=None, created_before=None,
    context=None, limit=None, cursor=None,
): ...
def get_episode(self, episode_id): ...
def get_episode_raw(self, episode_id): ...
def list_episode_traces(
    self, episode_id, *, run_id=None, environment_id=None, model_id=None, model_provider=None,
    task_id=None, reward_min=None, reward_max=None, outcome=None, has_error=None,
    is_truncated=None, created_after=None, created_before=None, context=None, limit=None,
    cursor=None,
): ...
def list_runs(
    self, *, run_type=None, created_by=None, created_after=None, created_before=None, limit=None,
    cursor=None,
): ...
def get_run(self, run_id): ...
def list_run_steps(self, run_id): ...
def search(
    self, query, *, run_id, field="content", role=None, run_step=None, has_error=None,
    reward_min=None, reward_max=None, limit=50, cursor=None,
): ...
"""
SCHEMAS: dict[str, Any] = json.loads(
    files("prime_local.contract").joinpath("traces.json").read_text("utf-8")
)["components"]["schemas"]
EXPORTED = {name: getattr(prime_traces, name) for name in SCHEMAS if name in prime_traces.__all__}
MODELS = {
    name: value
    for name, value in EXPORTED.items()
    if inspect.isclass(value) and issubclass(value, BaseModel)
}


def promised() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(PROMISED, names)
    return {name: value for name, value in names.items() if inspect.isfunction(value)}


@pytest.mark.parametrize("kind", ["AsyncTracesClient", "TracesClient"])
@pytest.mark.parametrize(("name", "wanted"), promised().items(), ids=promised())
def test_a_query_takes_its_parameters(kind: str, name: str, wanted: Any) -> None:
    ours = list(inspect.signature(getattr(getattr(prime_traces, kind), name)).parameters.values())
    theirs = list(inspect.signature(wanted).parameters.values())
    for mine, their in zip(ours, theirs, strict=False):
        assert (mine.name, mine.kind, mine.default) == (their.name, their.kind, their.default)
    for added in ours[len(theirs) :]:
        assert added.kind is inspect.Parameter.KEYWORD_ONLY
        assert added.default is not inspect.Parameter.empty


def fields_of(schema: dict[str, Any]) -> set[str]:
    """The properties of a schema, and of those it is made of."""
    found = set(schema.get("properties", ()))
    for part in schema.get("allOf", ()):
        found |= fields_of(SCHEMAS[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part)
    return found


def test_every_answer_of_the_contract_has_its_model() -> None:
    assert MODELS.keys() >= {
        "EpisodeDetail", "EpisodeError", "EpisodeListPage", "EpisodeSummary",
        "EpisodeTraceAggregate", "Execution", "ModelInfo", "NodeMessage", "RunListPage",
        "RunStep", "RunStepList", "RunSummary", "Score", "TraceCall", "TraceCallPage",
        "TraceListPage", "TraceNode", "TraceNodePage", "TraceSearchCoverage",
        "TraceSearchMatch", "TraceSearchPage", "TraceSummary", "UploadReceipt",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "model"), MODELS.items(), ids=MODELS)
def test_a_model_has_every_field_of_its_schema(name: str, model: type[BaseModel]) -> None:
    assert fields_of(SCHEMAS[name]) == model.model_fields.keys()
    assert model.model_config.get("extra") == "allow"


def test_every_code_of_the_contract_is_a_member() -> None:
    assert [code.value for code in prime_traces.ErrorCode] == SCHEMAS["ErrorCode"]["enum"]
