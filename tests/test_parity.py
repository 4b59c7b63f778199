"""The sync clients offer what the async ones do, and all of it is documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator
from enum import Enum
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel
from typing_extensions import is_typeddict

from syncgen.rules import RULES

PACKAGES = [
    "prime_core",
    "prime_compute",
    "prime_inference",
    "prime_sandboxes",
    "prime_traces",
    "prime_train",
]
RENAMED = {"aclose": "close"}


def async_classes() -> dict[str, type[Any]]:
    """Every async class, by its qualified name."""
    found: dict[str, type[Any]] = {}
    for package in PACKAGES:
        home = importlib.import_module(f"{package}._async")
        for entry in pkgutil.iter_modules(home.__path__, f"{home.__name__}."):
            module = importlib.import_module(entry.name)
            for name in module.__all__:
                if inspect.isclass(getattr(module, name)) and name.startswith("Async"):
                    found[f"{package}.{name}"] = getattr(module, name)
    return found


CLASSES = async_classes()
each_class = pytest.mark.parametrize(("name", "cls"), CLASSES.items(), ids=CLASSES)


def twin_of(cls: type[Any]) -> type[Any]:
    module = importlib.import_module(cls.__module__.replace("._async.", "._sync."))
    twin: type[Any] = getattr(module, cls.__name__.removeprefix("Async"))
    return twin


def public(cls: type[Any]) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def methods(cls: type[Any]) -> dict[str, Any]:
    members = inspect.getmembers(cls, inspect.isfunction)
    return {name: function for name, function in members if not name.startswith("_")}


def shape(function: Any) -> list[tuple[str, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(item.name, item.kind, item.default) for item in parameters]


def test_the_classes_that_users_meet_are_among_those_compared() -> None:
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            if name.startswith("Async"):
                assert getattr(package, name) in CLASSES.values()
                assert getattr(package, name.removeprefix("Async")) is twin_of(
                    getattr(package, name)
                )


@each_class
def test_the_twin_has_every_public_name_and_no_other(name: str, cls: type[Any]) -> None:
    expected = {RENAMED.get(member, member) for member in public(cls)}
    # Plain attributes of an async object are properties of its twin.
    attributes = {
        member
        for member in public(twin_of(cls)) - expected
        if isinstance(inspect.getattr_static(twin_of(cls), member), property)
        and member in get_type_hints(cls.__init__) | inspect.get_annotations(cls)
    }
    assert public(twin_of(cls)) == expected | attributes


@each_class
def test_the_twin_has_the_same_parameters_and_is_no_coroutine(name: str, cls: type[Any]) -> None:
    twin = twin_of(cls)
    for member, function in methods(cls).items():
        sync = getattr(twin, RENAMED.get(member, member))
        assert shape(sync) == shape(function), member
        assert not inspect.iscoroutinefunction(sync)
        assert not inspect.isasyncgenfunction(sync)
        if inspect.get_annotations(function)["return"].startswith(AsyncIterator.__name__):
            assert inspect.get_annotations(sync)["return"].startswith(Iterator.__name__)


@each_class
def test_the_twin_is_constructed_by_the_generators_rules(name: str, cls: type[Any]) -> None:
    twin = twin_of(cls)
    if name in RULES.made_by:
        with pytest.raises(TypeError, match=f"made by {RULES.made_by[name]}"):
            twin()
        return
    rule = RULES.constructors.get(name)
    theirs = shape(cls.__init__)
    if rule is None:
        assert shape(twin.__init__) == theirs
        return
    left = [item for item in theirs if item[0] not in (rule.passed_as, *rule.without)]
    own, first, *others = shape(twin.__init__)
    assert (first[0], own, others) == (rule.first, left[0], left[1:])


@each_class
def test_the_twin_is_a_context_manager_where_the_async_class_is(name: str, cls: type[Any]) -> None:
    twin = twin_of(cls)
    assert hasattr(twin, "__enter__") == hasattr(cls, "__aenter__")
    assert hasattr(twin, "__exit__") == hasattr(cls, "__aexit__")
    assert not hasattr(twin, "__aenter__")
    assert not hasattr(cls, "__enter__")


# What follows is about documentation.


def exported() -> dict[str, type[Any]]:
    """Every class that a package's root names."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            if inspect.isclass(getattr(module, name)):
                found[f"{package}.{name}"] = getattr(module, name)
    return found


EXPORTED = exported()
MODELS = {name: cls for name, cls in EXPORTED.items() if issubclass(cls, BaseModel)}
ERRORS = {name: cls for name, cls in EXPORTED.items() if issubclass(cls, BaseException)}
DICTIONARIES = {name: cls for name, cls in EXPORTED.items() if is_typeddict(cls)}
OTHERS = {
    name: cls
    for name, cls in EXPORTED.items()
    if name not in MODELS | ERRORS | DICTIONARIES and not issubclass(cls, Enum)
}
MADE_BY_OTHERS = {name.replace(".Async", ".") for name in RULES.made_by}


def first_line_problem(documented: Any) -> str | None:
    text = inspect.getdoc(documented) or ""
    first, _, rest = text.partition("\n")
    if not first.endswith(".") or len(first) > 100:
        return f"its first line is no sentence: {first!r}"
    if rest and not rest.startswith("\n"):
        return f"its first line is not alone: {text[:120]!r}"
    return None


def described(documented: Any) -> set[str]:
    """The names that the sections of a docstring explain."""
    return set(re.findall(r"^ {4}(\w+): ", inspect.getdoc(documented) or "", re.MULTILINE))


def undescribed(cls: type[Any], function: Any) -> set[str]:
    """The parameters that neither a docstring nor a method that it refers to explains."""
    known = described(function)
    for name in re.findall(r"`(\w+)`", inspect.getdoc(function) or ""):
        if callable(getattr(cls, name, None)):
            known |= described(getattr(cls, name))
    return set(inspect.signature(function).parameters) - {"self", "cls"} - known


@pytest.mark.parametrize(("name", "cls"), EXPORTED.items(), ids=EXPORTED)
def test_a_public_class_says_what_it_is_for(name: str, cls: type[Any]) -> None:
    assert "__doc__" in vars(cls)
    assert first_line_problem(cls) is None


@pytest.mark.parametrize(("name", "cls"), OTHERS.items(), ids=OTHERS)
def test_a_public_method_says_what_it_is_for_and_explains_its_parameters(
    name: str, cls: type[Any]
) -> None:
    for member, function in methods(cls).items():
        assert first_line_problem(function) is None, member
        assert undescribed(cls, function) == set(), member
    for member in public(cls):
        value = inspect.getattr_static(cls, member)
        # The properties of a generated class may stand for plain attributes.
        if isinstance(value, property) and "._sync." not in cls.__module__:
            assert first_line_problem(value) is None, member


@pytest.mark.parametrize("name", sorted(OTHERS.keys() - MADE_BY_OTHERS))
def test_a_public_class_explains_what_makes_it(name: str) -> None:
    cls = OTHERS[name]
    if getattr(cls, "_is_protocol", False):
        return  # users write what has its methods; nothing makes it
    # The signature of pydantic's data classes is made late.
    parameters = getattr(cls, "__pydantic_fields__", inspect.signature(cls).parameters)
    assert set(parameters) - described(cls) == set()


@pytest.mark.parametrize(("name", "cls"), MODELS.items(), ids=MODELS)
def test_a_model_explains_its_fields(name: str, cls: type[BaseModel]) -> None:
    inherited = {field for base in cls.__bases__ for field in getattr(base, "model_fields", ())}
    assert set(cls.model_fields) - inherited - described(cls) == set()


@pytest.mark.parametrize(("name", "cls"), DICTIONARIES.items(), ids=DICTIONARIES)
def test_a_dictionary_explains_its_keys(name: str, cls: type[Any]) -> None:
    named = re.findall(r"`(\w+)`", inspect.getdoc(cls) or "")  # a model that explains them
    models = [model for model in MODELS.values() if model.__name__ in named]
    explained = described(cls).union(*(described(model) for model in models))
    assert set(cls.__annotations__) - explained == set()


@pytest.mark.parametrize(("name", "cls"), ERRORS.items(), ids=ERRORS)
def test_an_error_explains_what_it_holds(name: str, cls: type[Any]) -> None:
    parameters = set(inspect.signature(cls.__init__).parameters)
    explained = set[str]().union(*(described(base) for base in cls.__mro__))
    # Those of a plain `Exception` are no names of ours.
    assert parameters - {"self", "args", "kwargs", "message"} - explained == set()
