"""Reading a Dockerfile: from text to the steps of a build."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from prime_local.images.words import WordError, expand, split_words

_BUILT = ("FROM", "COPY", "ADD", "RUN", "ENV", "WORKDIR", "USER")
_WORD = re.compile(r"(\S+)\s*(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*['\"]?\w")
_CHMOD = re.compile(r"[0-7]{3,4}")
_ACCOUNT = re.compile(r"[\w.@-]+(:[\w.@-]+)?")


class DockerfileError(Exception):
    """A Dockerfile that cannot be built here; the text names the line and says why."""


@dataclass(frozen=True)
class ImageSettings:
    """What an image sets for the commands of its sandboxes."""

    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    user: str | None = None


@dataclass(frozen=True)
class Run:
    """A command to run."""

    argv: tuple[str, ...]


@dataclass(frozen=True)
class Copy:
    """Files of the context to copy; `unpack` takes archives apart, as ADD does."""

    sources: tuple[str, ...]
    target: str
    mode: int | None
    owner: str | None
    unpack: bool


@dataclass(frozen=True)
class MakeFolder:
    """A folder to make, with those above it."""

    path: str


@dataclass(frozen=True)
class Step:
    """One instruction: how the log names it, what is to be done, and what is in force then."""

    title: str
    action: Run | Copy | MakeFolder | None
    settings: ImageSettings


@dataclass(frozen=True)
class Plan:
    """A build: the image that it starts from, its steps after that, and what it comes to."""

    base: str
    steps: tuple[Step, ...]
    settings: ImageSettings


@dataclass(frozen=True)
class _Instruction:
    line: int
    name: str
    flags: Mapping[str, str]
    text: str

    def error(self, why: str) -> DockerfileError:
        return DockerfileError(f"line {self.line}: {self.name}: {why}")


def base_of(text: str) -> str:
    """Return the reference of the image that a Dockerfile starts from.

    Raises:
        DockerfileError: it cannot be built here.
    """
    instructions = _read(text)
    for instruction in instructions:
        if instruction.name not in _BUILT:
            raise DockerfileError(
                f"line {instruction.line}: {instruction.name} is not simulated: builds here know "
                f"{', '.join(_BUILT)}"
            )
    if not instructions or instructions[0].name != "FROM":
        raise DockerfileError("the first instruction is no FROM")
    return _base(instructions[0])


def plan(text: str, base: ImageSettings, search_path: str) -> Plan:
    """Work out the steps of a build.

    Args:
        text: the Dockerfile.
        base: the settings of the image that it starts from.
        search_path: what PATH is where no ENV sets it.

    Raises:
        DockerfileError: it cannot be built here.
    """
    reference = base_of(text)
    settings, steps = base, []
    for instruction in _read(text)[1:]:
        known = {"PATH": search_path, **settings.env}
        try:
            settings, action = _HANDLERS[instruction.name](instruction, settings, known)
        except WordError as error:
            raise instruction.error(str(error)) from error
        title = f"{instruction.name} {' '.join(instruction.text.split())}"
        steps.append(Step(title[:200], action, settings))
    return Plan(reference, tuple(steps), settings)


def _read(text: str) -> list[_Instruction]:
    return [_parse(line, content) for line, content in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield instructions with their line numbers; continued lines are joined, comments dropped."""
    joined, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            if re.fullmatch(r"#\s*escape\s*=\s*`", stripped, re.IGNORECASE):
                raise DockerfileError(f"line {number}: another escape character is not simulated")
            continue
        began = began or number
        body = line.rstrip()
        if body.endswith("\\"):
            joined += body[:-1]
        else:
            yield began, (joined + body).strip()
            joined, began = "", 0
    if joined.strip():
        yield began, joined.strip()


def _parse(line: int, content: str) -> _Instruction:
    found = _WORD.match(content)
    assert found is not None
    name, rest = found[1].upper(), found[2]
    flags = {}
    while name in _BUILT and rest.startswith("--"):
        flag = _WORD.match(rest)
        assert flag is not None
        key, _, value = flag[1].partition("=")
        flags[key], rest = value, flag[2]
    instruction = _Instruction(line, name, flags, rest)
    if name in _BUILT:
        if not rest:
            raise instruction.error("nothing follows it")
        if name in ("RUN", "COPY", "ADD") and _HEREDOC.search(rest):
            raise instruction.error("here-documents are not simulated")
    return instruction


def _refuse_flags(instruction: _Instruction, *known: str) -> None:
    for flag in instruction.flags:
        if flag not in known:
            raise instruction.error(f"{flag} is not simulated")


def _json_words(text: str) -> list[str] | None:
    """Return the words of the JSON form, None for the other one."""
    if not text.startswith("["):
        return None
    try:
        words = json.loads(text)
    except ValueError:
        return None
    return words if words and all(isinstance(word, str) for word in words) else None


def _base(instruction: _Instruction) -> str:
    _refuse_flags(instruction, "--platform")
    words = split_words(instruction.text)
    if len(words) != 1 and not (len(words) == 3 and words[1].upper() == "AS"):
        raise instruction.error("it takes one image, and a name after AS")
    if words[0] == "scratch":
        raise instruction.error("scratch is not simulated: nothing could run in it")
    if "$" in words[0]:
        raise instruction.error("a variable is not simulated here")
    return words[0]


_Result = tuple[ImageSettings, Run | Copy | MakeFolder | None]


def _second_stage(
    instruction: _Instruction, settings: ImageSettings, known: Mapping[str, str]
) -> _Result:
    raise instruction.error("a second one, for a build in stages, is not simulated")


def _run(instruction: _Instruction, settings: ImageSettings, known: Mapping[str, str]) -> _Result:
    _refuse_flags(instruction)
    words = _json_words(instruction.text)
    return settings, Run(tuple(words or ("/bin/sh", "-c", instruction.text)))


def _copy(instruction: _Instruction, settings: ImageSettings, known: Mapping[str, str]) -> _Result:
    _refuse_flags(instruction, "--chmod", "--chown")
    mode = instruction.flags.get("--chmod")
    if mode is not None and not _CHMOD.fullmatch(mode):
        raise instruction.error("--chmod takes an octal mode, such as 755")
    words = _json_words(instruction.text) or split_words(instruction.text)
    *sources, target = [expand(word, known) for word in words]
    if not sources or not target or "" in sources:
        raise instruction.error("it takes at least one source and a target")
    if any("://" in source or source.startswith("git@") for source in sources):
        raise instruction.error("there is no network to fetch a URL from")
    if len(sources) > 1 and not target.endswith("/"):
        raise instruction.error("with several sources the target ends in a slash")
    path = posixpath.join(settings.workdir or "/", target)
    if target.endswith(("/", "/.")) or target == ".":
        path = posixpath.join(posixpath.normpath(path), "")
    octal = None if mode is None else int(mode, 8)
    owner = instruction.flags.get("--chown")
    if owner is not None and not _ACCOUNT.fullmatch(owner):
        raise instruction.error("--chown takes an account, and a group after a colon")
    return settings, Copy(tuple(sources), path, octal, owner, instruction.name == "ADD")


def _env(instruction: _Instruction, settings: ImageSettings, known: Mapping[str, str]) -> _Result:
    _refuse_flags(instruction)
    words = split_words(instruction.text)
    if "=" not in words[0]:
        name, value = words[0], instruction.text[len(words[0]) :].strip()
        if not value:
            raise instruction.error("it takes NAME=VALUE")
        found = {name: expand(value, known)}
    else:
        found = {}
        for word in words:
            name, equals, value = word.partition("=")
            name = expand(name, known)
            if not equals or not name:
                raise instruction.error(f"{word} is no NAME=VALUE")
            found[name] = expand(value, known)
    return replace(settings, env={**settings.env, **found}), None


def _workdir(
    instruction: _Instruction, settings: ImageSettings, known: Mapping[str, str]
) -> _Result:
    _refuse_flags(instruction)
    path = posixpath.join(settings.workdir or "/", expand(instruction.text, known))
    path = "/" + posixpath.normpath(path).lstrip("/")
    return replace(settings, workdir=path), MakeFolder(path)


def _user(instruction: _Instruction, settings: ImageSettings, known: Mapping[str, str]) -> _Result:
    _refuse_flags(instruction)
    user = expand(instruction.text, known)
    if not _ACCOUNT.fullmatch(user):
        raise instruction.error("it takes an account, and a group after a colon")
    return replace(settings, user=user), None


_Handler = Callable[[_Instruction, ImageSettings, Mapping[str, str]], _Result]
_HANDLERS: dict[str, _Handler] = {
    "FROM": _second_stage,
    "RUN": _run,
    "COPY": _copy,
    "ADD": _copy,
    "ENV": _env,
    "WORKDIR": _workdir,
    "USER": _user,
}
