"""Writes down what the packages promise: every public name with its signature.

    python -m uv run python tools/public_api.py            write tests/public_api/*.txt
    python -m uv run python tools/public_api.py --check    write nothing, fail on a difference

A line each for a class with its bases, a method, a property, an attribute, a field with its
wire name and default, and a member of an enum. Bases that no package exports are no promise:
what they define counts as the class's own. Annotations stand as they are written, and the text
is the same on every Python version.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import difflib
import functools
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, ForwardRef, Generic

from pydantic import BaseModel
from pydantic.dataclasses import is_pydantic_dataclass
from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "public_api"
PACKAGES = sorted(
    [
        *(path.parent.name for path in ROOT.glob("packages/*/src/*/__init__.py")),
        "prime_traces.runs",
    ]
)
# Of the special methods, those that users reach by syntax; others come and go unnoticed.
PROTOCOLS = frozenset(
    f"__{name}__"
    for name in (
        *("init", "call", "await", "len", "getitem", "contains"),
        *("enter", "exit", "aenter", "aexit", "iter", "next", "aiter", "anext"),
    )
)


class Written(str):
    """Text that a signature shows as it stands, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def main() -> int:
    """Writes the files, or compares them. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Write down the public API of the packages.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check: bool = parser.parse_args().check
    difference = drift()
    if difference and not check:
        FOLDER.mkdir(exist_ok=True)
        for path, text in generate().items():
            path.write_text(text, encoding="utf-8")
        for path in stale():
            path.unlink()
    print(difference, end="")
    return 1 if difference and check else 0


def drift() -> str:
    """Returns how the files differ from the packages, as a diff; "" when they don't."""
    texts = generate() | dict.fromkeys(stale(), "")
    lines: list[str] = []
    for path, text in texts.items():
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        lines += difflib.unified_diff(
            present.splitlines(keepends=True),
            text.splitlines(keepends=True),
            str(path.relative_to(ROOT)),
            "the packages now",
            n=0,  # a line names its class
        )
    return "".join(lines)


def generate() -> dict[Path, str]:
    """Returns the text of every file."""
    return {
        FOLDER / f"{package}.txt": "".join(f"{line}\n" for line in describe_package(package))
        for package in PACKAGES
    }


def stale() -> list[Path]:
    """Returns the files of packages that are no more."""
    return [path for path in FOLDER.glob("*.txt") if path.stem not in PACKAGES]


def describe_package(package: str) -> Iterator[str]:
    module = importlib.import_module(package)
    for name in sorted(module.__all__):
        value: object = getattr(module, name)
        if inspect.isfunction(value):
            yield method_line(name, value)
        elif not isinstance(value, type):
            yield f"value {name}: {type(value).__name__}"
        elif package_of(value) == package.partition(".")[0] and value.__name__ == name:
            yield from describe_class(value)
        else:
            yield f"name {name}: {package_of(value)}.{value.__name__}"


def describe_class(cls: type) -> Iterator[str]:
    parameters = [parameter.__name__ for parameter in getattr(cls, "__parameters__", ())]
    generic = f"[{', '.join(parameters)}]" if parameters else ""
    bases = ", ".join(dict.fromkeys(promised_bases(cls)))
    yield f"class {cls.__name__}{generic}" + (f"({bases})" if bases else "")
    if issubclass(cls, Enum):
        yield from (f"member {cls.__name__}.{each.name} = {each.value!r}" for each in cls)
    elif issubclass(cls, BaseModel) or is_pydantic_dataclass(cls):
        yield from (f"field {cls.__name__}.{line}" for line in model_fields(cls))
    else:
        yield from (f"attribute {cls.__name__}.{line}" for line in attributes(cls))
    yield from members(cls)


def promised_bases(cls: type) -> Iterator[str]:
    for base in cls.__bases__:
        if hidden(base):
            yield from promised_bases(base)
        elif base not in (object, Generic):
            yield base.__name__


def definers(cls: type) -> list[type]:
    """Returns the class and the bases whose definitions count as its own, in their order."""
    return [base for base in cls.__mro__ if base is cls or hidden(base)]


def hidden(cls: type) -> bool:
    """Whether a class is ours and no package exports it."""
    return package_of(cls) in PACKAGES and cls not in exported()


@functools.cache
def exported() -> frozenset[type]:
    modules = [importlib.import_module(package) for package in PACKAGES]
    values = [getattr(module, name) for module in modules for name in module.__all__]
    return frozenset(value for value in values if isinstance(value, type))


def package_of(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def members(cls: type) -> Iterator[str]:
    """Yields the methods and properties of a class, by name."""
    found: dict[str, object] = {}
    for definer in reversed(definers(cls)):
        found |= vars(definer)
    for name in sorted(found):
        value, shown = found[name], f"{cls.__name__}.{name}"
        if name.startswith("_") and name not in PROTOCOLS:
            continue
        if issubclass(cls, BaseModel) and hasattr(BaseModel, name):
            continue  # pydantic's hooks
        if name == "__init__" and getattr(cls, "_is_protocol", False):
            continue  # typing's own, which refuses instances
        if name == "__init__" and is_pydantic_dataclass(cls):
            continue  # pydantic's own, which takes the fields by name
        if isinstance(value, property) and value.fget is not None:
            settable = " (settable)" if value.fset else ""
            yield f"property {shown}: {annotation(value.fget, 'return')}{settable}"
        elif isinstance(value, (classmethod, staticmethod)):
            yield f"{type(value).__name__} {method_line(shown, value.__func__)}"
        elif inspect.isfunction(value):
            yield method_line(shown, value)


def model_fields(cls: type[Any]) -> Iterator[str]:
    written = written_in_body(cls)
    for name, field in cls.__pydantic_fields__.items():
        if name in written:
            alias = f" (on the wire: {field.alias})" if field.alias else ""
            yield f"{name}: {written[name]}{default_of(field)}{alias}"


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    if field.default_factory is not None:
        return f" = {field.default_factory.__name__}()"
    return f" = {literal(field.default)}"


def attributes(cls: type) -> Iterator[str]:
    """Yields what is no method: annotated names, constants, and what `__init__` assigns."""
    found = {name: f"{name}: {type_}" for name, type_ in written_in_body(cls).items()}
    for definer in definers(cls):
        for name, value in vars(definer).items():
            if isinstance(value, (str, int, float, tuple)):
                found.setdefault(name, f"{name} = {literal(value)}")
        if "__init__" in vars(definer) and not dataclasses.is_dataclass(definer):
            for name, type_ in assigned(vars(definer)["__init__"]):
                found.setdefault(name, f"{name}: {type_}")
    yield from (line for name, line in found.items() if not name.startswith("_"))


def assigned(function: Any) -> Iterator[tuple[str, str]]:
    """Yields the attributes that a method assigns, each with the type written for it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        type_ = "(not annotated)"
        if isinstance(node, ast.AnnAssign):
            target: ast.expr = node.target
            type_ = ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
            if isinstance(node.value, ast.Name) and node.value.id in function.__annotations__:
                type_ = annotation(function, node.value.id)
        else:
            continue
        if isinstance(target, ast.Attribute):
            yield target.attr, type_


def written_in_body(cls: type) -> dict[str, str]:
    """Returns the annotations in a class's body, as they are written."""
    return {
        name: text
        for definer in reversed(definers(cls))
        for name, text in texts(inspect.get_annotations(definer))
        if not text.startswith("ClassVar")
    }


def texts(annotations: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields annotations as they are written; a TypedDict wraps its own."""
    for name, value in annotations.items():
        yield name, value.__forward_arg__ if isinstance(value, ForwardRef) else value


def annotation(function: Any, name: str) -> str:
    text = function.__annotations__[name]
    if text is None:  # the constructor that a dataclass makes
        return "None"
    if not isinstance(text, str):
        raise SystemExit(f"{function.__module__} lacks `from __future__ import annotations`.")
    return text


def method_line(name: str, function: Any) -> str:
    # An async generator is not awaited: it gives its iterator at once.
    kind = "async def" if inspect.iscoroutinefunction(function) else "def"
    return f"{kind} {name}{signature(function)}"


def signature(function: Any) -> str:
    """Returns a function's parameters and result, as they are written."""
    found = inspect.signature(function)
    empty = inspect.Parameter.empty
    parameters = [
        parameter.replace(
            default=empty if parameter.default is empty else Written(literal(parameter.default)),
            annotation=empty
            if parameter.annotation is empty
            else Written(annotation(function, parameter.name)),
        )
        for parameter in found.parameters.values()
    ]
    result = Written(annotation(function, "return"))
    return str(found.replace(parameters=parameters, return_annotation=result))


def literal(value: object) -> str:
    if isinstance(value, Enum):  # its repr depends on the Python version
        return f"{type(value).__name__}.{value.name}"
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
