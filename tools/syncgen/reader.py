"""Reads a module of async classes and refuses what has no sync form."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from syncgen.annotations import PREFIX, Annotations, head
from syncgen.problems import Unsupported

Function = ast.FunctionDef | ast.AsyncFunctionDef

KEPT_DECORATORS = frozenset({"overload", "final"})
PROPERTIES = frozenset({"property", "cached_property"})
CLASS_LEVEL = frozenset({"classmethod", "staticmethod"})
PUBLIC_DUNDERS = frozenset(
    {
        "__init__",
        "__aenter__",
        "__aexit__",
        "__aiter__",
        "__anext__",
        "__len__",
        "__bool__",
        "__contains__",
        "__getitem__",
    }
)
# What the facade has itself, or what concerns only the wrapped object.
INNER_DUNDERS = frozenset(
    {"__repr__", "__del__", "__getstate__", "__setstate__", "__reduce__", "__slots__"}
)


@dataclass(frozen=True)
class Binding:
    """An import; ``module`` is empty for ``import name``."""

    module: str
    name: str
    typing_only: bool


@dataclass(frozen=True)
class AsyncClass:
    """Args:
    constants: public class attributes that have a value.
    attributes: public attributes of an instance, by name.
    methods: public functions in the order of the source.
    """

    node: ast.ClassDef
    constants: list[str] = field(default_factory=list)
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    methods: list[Function] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.node.name


@dataclass
class Module:
    """One file of a package's ``_async`` folder."""

    path: Path
    package: str
    tree: ast.Module
    annotations: Annotations
    imports: dict[str, Binding] = field(default_factory=dict)
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    classes: list[ast.ClassDef] = field(default_factory=list)
    exports: list[str] = field(default_factory=list)

    @property
    def import_path(self) -> str:
        folder = f"{self.package}._async"
        return folder if self.is_folder else f"{folder}.{self.path.stem}"

    @property
    def is_folder(self) -> bool:
        """Whether it is the folder's own module, which every ``_sync`` folder needs too."""
        return self.path.stem == "__init__"


def async_classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith(PREFIX):
            yield node


def read_module(path: Path, known: Set[str]) -> Module:
    """Args:
        path: a file at ``<package>/_async/<name>.py``.
        known: names of all async classes of the run.

    Raises:
        Unsupported: at a statement that the generator doesn't know.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = Module(path, path.parent.parent.name, tree, Annotations(known))
    for node in tree.body:
        _read_statement(module, node, typing_only=False)
    for name in module.imports.keys() | module.definitions.keys():
        if PREFIX + name in known and _binds(module, PREFIX + name):
            raise Unsupported(None, f"{name} is also the name of {PREFIX}{name}'s sync class")
    return module


def _binds(module: Module, name: str) -> bool:
    return name in module.imports or name in module.definitions


def _read_statement(module: Module, node: ast.stmt, *, typing_only: bool) -> None:
    if isinstance(node, ast.Import):
        for item in node.names:
            bound = item.asname or item.name.partition(".")[0]
            module.imports[bound] = Binding("", item.name, typing_only)
    elif isinstance(node, ast.ImportFrom):
        origin = "." * node.level + (node.module or "")
        for item in node.names:
            if item.asname and item.name.startswith(PREFIX):
                raise Unsupported(node, f"import {item.name} by its own name")
            module.imports[item.asname or item.name] = Binding(origin, item.name, typing_only)
    elif isinstance(node, ast.If) and head(node.test) == "TYPE_CHECKING" and not node.orelse:
        for statement in node.body:
            _read_statement(module, statement, typing_only=True)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        _read_assignment(module, node)
    elif isinstance(node, Function):
        if not node.name.startswith("_") or node.name.startswith("__"):
            raise Unsupported(node, f"the public function {node.name}: make it a method")
        module.definitions[node.name] = node
    elif isinstance(node, ast.ClassDef):
        _read_class_statement(module, node)
    elif not _says_nothing(node):
        raise Unsupported(node, "a statement that the generator doesn't know")


def _read_assignment(module: Module, node: ast.Assign | ast.AnnAssign) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if not isinstance(target, ast.Name):
            raise Unsupported(node, "an assignment to something other than a name")
        if target.id == "__all__":
            module.exports = [str(name) for name in ast.literal_eval(node.value or target)]
        else:
            module.definitions[target.id] = node


def _read_class_statement(module: Module, node: ast.ClassDef) -> None:
    module.definitions[node.name] = node
    if node.name.startswith(PREFIX):
        module.classes.append(node)
    elif not node.name.startswith("_") and module.annotations.is_async(node):
        raise Unsupported(node, f"{node.name} has async parts: call it {PREFIX}{node.name}")


def _says_nothing(node: ast.stmt) -> bool:
    """Whether it is a docstring, ``...`` or ``pass``."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def read_class(module: Module, node: ast.ClassDef) -> AsyncClass:
    """Raises Unsupported at a member that the generator doesn't know."""
    found = AsyncClass(node)
    for member in node.body:
        if isinstance(member, Function):
            _read_method(found, member)
        elif isinstance(member, (ast.Assign, ast.AnnAssign)):
            _read_class_attribute(found, member)
        elif isinstance(member, ast.ClassDef) and member.name.startswith("_"):
            continue
        elif not _says_nothing(member):
            raise Unsupported(member, "a member that the generator doesn't know")
    _read_instance_attributes(module, found)
    return found


def _read_method(found: AsyncClass, node: Function) -> None:
    if node.name in INNER_DUNDERS or (node.name.startswith("_") and not _is_dunder(node.name)):
        return
    if _is_dunder(node.name) and node.name not in PUBLIC_DUNDERS:
        raise Unsupported(node, f"{node.name} has no sync form")
    for decorator in node.decorator_list:
        name = decorator_name(decorator)
        if name not in KEPT_DECORATORS | PROPERTIES | CLASS_LEVEL:
            raise Unsupported(node, f"the decorator {ast.unparse(decorator)} has no sync form")
    found.methods.append(node)


def _read_class_attribute(found: AsyncClass, node: ast.Assign | ast.AnnAssign) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if not isinstance(target, ast.Name):
            raise Unsupported(node, "an assignment to something other than a name")
        if target.id.startswith("_"):
            continue
        if isinstance(node, ast.AnnAssign) and node.value is None:
            found.attributes[target.id] = node.annotation
        else:
            found.constants.append(target.id)


def _read_instance_attributes(module: Module, found: AsyncClass) -> None:
    methods = [member for member in found.node.body if isinstance(member, Function)]
    known = {*found.constants, *(method.name for method in methods)}
    for method in methods:
        annotated = {item.arg: item.annotation for item in parameters(method.args)}
        for node in ast.walk(method):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                name = _public_attribute_of_self(target)
                annotation = _annotation_of(module, node, annotated)
                if name and name not in known and annotation is not None:
                    found.attributes.setdefault(name, annotation)
    for node in ast.walk(found.node):
        name = _public_attribute_of_self(node)
        if name and name not in known | found.attributes.keys():
            raise Unsupported(node, f"annotate the public attribute {name}")


def _annotation_of(
    module: Module, node: ast.Assign | ast.AnnAssign, annotated: Mapping[str, ast.expr | None]
) -> ast.expr | None:
    if isinstance(node, ast.AnnAssign):
        return node.annotation
    if isinstance(node.value, ast.Name):
        return annotated.get(node.value.id)
    if isinstance(node.value, ast.Call) and head(node.value.func) in module.annotations.known:
        return node.value.func
    return None


def _public_attribute_of_self(node: ast.AST) -> str | None:
    """The attribute's name when the node stores into one."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
        return None
    return node.attr if head(node.value) == "self" and not node.attr.startswith("_") else None


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def decorator_name(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All of them, in order, with ``self`` or ``cls``."""
    found = [*arguments.posonlyargs, *arguments.args, arguments.vararg]
    return [item for item in [*found, *arguments.kwonlyargs, arguments.kwarg] if item]


def parameter_names(tree: ast.AST) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def is_generator(node: Function) -> bool:
    """Whether its own body yields; a function inside it may do so too."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(part)
    return False
