"""What users may hold pickles, wherever a package defines it: for pools, queues and caches."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable

import pytest
from discovery import classes, modules
from pydantic import BaseModel
from samples import sample
from typing_extensions import is_protocol

from prime_core.errors import PrimeError
from prime_sandboxes import APIClient, AsyncSandboxClient, SandboxClient

pytestmark = pytest.mark.usefixtures("clean_environment")

KEY = "pit_c0ffee-0123456789-secret"
FOUND = classes()
ERRORS = {name: cls for name, cls in FOUND.items() if issubclass(cls, PrimeError)}
MODELS = {
    name: cls
    for name, cls in FOUND.items()
    if issubclass(cls, BaseModel) and not name.startswith("prime_core.models.")
}
# What owns running sandboxes, processes or a directory is not to be doubled.
OWNERS = {
    "AsyncChatCompletionStream",
    "AsyncCompletionMap",
    "ChatCompletionStream",
    "CompletionMap",
    "AsyncDiskSession",
    "AsyncFleet",
    "AsyncOpenVolumeSession",
    "AsyncPodSession",
    "AsyncTraceSpool",
    "AsyncProcessOutput",
    "AsyncSandboxProcess",
    "DiskSession",
    "Fleet",
    "LoginChallenge",
    "OpenVolumeSession",
    "PodSession",
    "ProcessOutput",
    "SandboxProcess",
    "TraceSpool",
}


def exported() -> dict[str, type]:
    """Every class that a package's root names, besides models, errors and what owns things."""
    roots = [module for module in modules() if "." not in module.__name__]
    named = {
        f"{root.__name__}.{name}": getattr(root, name)
        for root in roots
        for name in root.__all__
        if name not in OWNERS
    }
    return {
        name: cls
        for name, cls in named.items()
        if inspect.isclass(cls)
        and not issubclass(cls, BaseModel | BaseException)
        and not is_protocol(cls)
    }


OTHERS = exported()


def test_something_of_every_kind_is_found() -> None:
    names = {name.rpartition(".")[2] for name in OTHERS}
    assert {"APIClient", "AsyncSandboxClient", "SandboxHandle", "AsyncSandboxHandle"} <= names
    assert len(MODELS) > 10
    assert len(ERRORS) > 20


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_pickles_whole(name: str, protocol: int) -> None:
    error = sample(ERRORS[name])
    twin = pickle.loads(pickle.dumps(error, protocol))
    assert type(twin) is type(error)
    assert (twin.args, vars(twin), str(twin)) == (error.args, vars(error), str(error))


@pytest.mark.parametrize("name", MODELS)
def test_every_model_pickles_whole(name: str) -> None:
    model = sample(MODELS[name])
    assert len(model.model_fields_set) == len(MODELS[name].model_fields)
    twin = pickle.loads(pickle.dumps(model))
    assert twin == model
    assert twin.model_fields_set == model.model_fields_set
    assert repr(twin) == repr(model)


@pytest.mark.parametrize(
    "name", [name for name, cls in MODELS.items() if cls.model_config.get("extra") == "allow"]
)
def test_what_a_newer_platform_added_to_a_model_is_pickled_too(name: str) -> None:
    model = MODELS[name].model_construct(added_later=[1])
    assert pickle.loads(pickle.dumps(model)).model_extra == {"added_later": [1]}


@pytest.mark.parametrize("name", OTHERS)
def test_every_client_and_handle_pickles_without_the_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_API_KEY", KEY)
    thing = sample(OTHERS[name])
    data = pickle.dumps(thing)
    assert KEY.encode() not in data
    twin = pickle.loads(data)
    assert type(twin) is type(thing)
    assert repr(twin) == repr(thing) or name == "prime_train.RunSecrets"  # which arrives empty
    # The key is looked up where it arrives.
    monkeypatch.setenv("PRIME_API_KEY", "pit_another")
    elsewhere = pickle.loads(data)
    assert getattr(elsewhere, "api_key", "pit_another") == "pit_another"


@pytest.mark.parametrize("client", [AsyncSandboxClient, lambda key: SandboxClient(APIClient(key))])
def test_a_fleet_does_not_pickle_since_two_would_delete_each_others_sandboxes(
    client: Callable[[str], AsyncSandboxClient | SandboxClient],
) -> None:
    with pytest.raises(TypeError, match="pickle its client"):
        pickle.dumps(client(KEY).fleet())
