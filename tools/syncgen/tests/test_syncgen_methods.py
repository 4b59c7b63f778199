"""What the generated methods do when they run."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from syncgen.testing import Workspace


def test_a_coroutine_method_blocks_and_returns_its_value(workspace: Workspace) -> None:
    workspace.source("""
        import asyncio
        class AsyncThing:
            async def double(self, number: int) -> int:
                await asyncio.sleep(0)
                return number * 2
        """)
    assert workspace.load().Thing().double(4) == 8


def test_a_method_that_returns_none_returns_none(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            async def forget(self, number: int) -> None:
                return None
        """)
    assert workspace.load().Thing().forget(1) is None
    assert "        run(self._async.forget(number))" in workspace.text()


def _shapes() -> Iterator[tuple[list[str], list[str]]]:
    """Parameter lists of every combination of kinds, with the names in each."""
    for default in ("", " = 9"):
        kinds = [f"a: int{default}, /", f"b: int{default}", "*c: int", f"d: int{default}"]
        kinds.append("**e: int")
        for chosen in itertools.product((False, True), repeat=5):
            parts = list(itertools.compress(kinds, chosen))
            names = list(itertools.compress("abcde", chosen))
            if "d" in names and "c" not in names:
                parts.insert(names.index("d"), "*")
            yield parts, names


def _arguments(signature: inspect.Signature) -> tuple[list[int], dict[str, int]]:
    """One argument for each parameter, and two for a variadic one."""
    names = signature.parameters
    positional = [index for index, name in enumerate("ab") if name in names]
    keywords = {name: 5 for name in "d" if name in names}
    return (
        [*positional, *([6, 7] if "c" in names else [])],
        keywords | ({"x": 8, "y": 9} if "e" in names else {}),
    )


def test_every_shape_of_signature_is_kept_and_passed_on(workspace: Workspace) -> None:
    lines = ["class AsyncThing:"]
    for index, (parts, names) in enumerate(_shapes()):
        lines.append(f"    async def m{index}({', '.join(['self', *parts])}) -> object:")
        lines.append(f"        return [{', '.join(names)}]")
    workspace.source("\n".join(lines))
    thing = workspace.load().Thing()
    for index, (_, names) in enumerate(_shapes()):
        method, asynchronous = getattr(thing, f"m{index}"), getattr(thing._async, f"m{index}")
        signature = inspect.signature(method)
        assert signature == inspect.signature(asynchronous)
        arguments, keywords = _arguments(signature)
        result = method(*arguments, **keywords)
        assert result == asyncio.run(asynchronous(*arguments, **keywords))
        assert len(result) == len(names)


def test_a_parameter_may_be_called_like_a_helper(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            async def start(self, run: str, iterate: int = 0) -> str:
                return run
            async def each(self, count: int) -> AsyncIterator[int]:
                yield count
        """)
    thing = workspace.load().Thing()
    assert thing.start(run="now") == "now"
    assert list(thing.each(3)) == [3]


def test_an_async_generator_becomes_an_iterator_that_closes_it(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            def __init__(self) -> None:
                self.closed: bool = False
            async def count(self, end: int) -> AsyncIterator[int]:
                try:
                    for number in range(end):
                        yield number
                finally:
                    self.closed = True
        """)
    thing = workspace.load().Thing()
    assert list(thing.count(3)) == [0, 1, 2]
    left = type(thing)()
    numbers = left.count(5)
    assert next(numbers) == 0
    assert left.closed is False
    numbers.close()
    assert left.closed is True


def test_an_iterator_of_async_objects_gives_sync_ones_and_closes(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncItem:
            def __init__(self, name: str) -> None:
                self.name = name
            async def read(self) -> str:
                return self.name.upper()
        class AsyncThing:
            def __init__(self) -> None:
                self.closed: bool = False
            async def items(self) -> AsyncIterator[AsyncItem]:
                try:
                    yield AsyncItem("a")
                    yield AsyncItem("b")
                finally:
                    self.closed = True
        """)
    module = workspace.load()
    thing = module.Thing()
    items = thing.items()
    first = next(items)
    assert isinstance(first, module.Item)
    assert first.read() == "A"
    items.close()
    assert thing.closed is True


def test_a_coroutine_that_gives_an_iterator_is_awaited_at_once(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            def __init__(self) -> None:
                self.opened: bool = False
            async def open(self) -> AsyncIterator[int]:
                self.opened = True
                return self._numbers()
            async def _numbers(self) -> AsyncIterator[int]:
                yield 1
        """)
    thing = workspace.load().Thing()
    numbers = thing.open()
    assert thing.opened is True
    assert list(numbers) == [1]


def test_results_that_hold_async_objects_hold_sync_ones(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncItem:
            def __init__(self, name: str = "") -> None:
                self.name = name
        class AsyncThing:
            async def maybe(self, result: str) -> AsyncItem | None:
                return AsyncItem(result) if result else None
            def one(self) -> AsyncItem:
                return AsyncItem("one")
            async def several(self) -> list[AsyncItem]:
                return [AsyncItem("a"), AsyncItem("b")]
            async def named(self) -> dict[str, AsyncItem]:
                return {"n": AsyncItem("c")}
            def later(self) -> Coroutine[Any, Any, AsyncItem]:
                return self._later()
            async def _later(self) -> AsyncItem:
                return AsyncItem("later")
        """)
    module = workspace.load()
    thing = module.Thing()
    assert thing.maybe("") is None
    found = [thing.maybe("m"), thing.one(), *thing.several(), thing.named()["n"], thing.later()]
    assert all(isinstance(item, module.Item) for item in found)
    assert [item.name for item in found] == ["m", "one", "a", "b", "c", "later"]


def test_a_context_manager_passes_the_exception_and_its_answer(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            def __init__(self) -> None:
                self.seen: list[str] = []
            async def __aenter__(self) -> Self:
                self.seen.append("enter")
                return self
            async def __aexit__(
                self, kind: type[BaseException] | None, error: BaseException | None,
                traceback: TracebackType | None,
            ) -> bool:
                self.seen.append(repr(error))
                return isinstance(error, KeyError)
            async def aclose(self) -> None:
                self.seen.append("closed")
        """)
    thing = workspace.load().Thing()
    with thing as entered:
        assert entered is thing
        raise KeyError("k")
    with pytest.raises(OSError, match="o"), thing:
        raise OSError("o")
    thing.close()
    assert thing.seen == ["enter", "KeyError('k')", "enter", "OSError('o')", "closed"]


def test_attributes_constants_and_properties_show_the_wrapped_ones(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncPart:
            size: int
            def __init__(self, size: int) -> None:
                self.size = size
        class AsyncThing:
            LIMIT = 10
            def __init__(self, part: AsyncPart | None = None, limit: int = LIMIT) -> None:
                self.part = part
                self.own = AsyncPart(limit)
                self._hidden = 1
            @property
            def half(self) -> int:
                return self.own.size // 2
            @cached_property
            def twin(self) -> AsyncPart:
                return AsyncPart(2)
            def __len__(self) -> int:
                return 7
        """)
    module = workspace.load()
    thing = module.Thing(module.Part(3))
    assert (thing.LIMIT, thing.part.size, thing.own.size, thing.half, len(thing)) == (
        10,
        3,
        10,
        5,
        7,
    )
    assert isinstance(thing.twin, module.Part)
    assert module.Thing().part is None
    assert not hasattr(thing, "_hidden")


def test_arguments_that_are_sync_objects_are_unwrapped(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncItem:
            def __init__(self, name: str) -> None:
                self.name = name
        class AsyncThing:
            async def names(
                self, item: AsyncItem | None = None, *, more: list[AsyncItem] | None = None
            ) -> list[str]:
                given = [*([item] if item else []), *(more or [])]
                assert all(type(found) is AsyncItem for found in given)
                return [found.name for found in given]
        """)
    module = workspace.load()
    a, b = module.Item("a"), module.Item("b")
    assert module.Thing().names() == []
    assert module.Thing().names(a, more=[b]) == ["a", "b"]


def test_class_and_static_methods(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            def __init__(self, name: str = "") -> None:
                self.name = name
            @classmethod
            async def connect(cls, name: str) -> Self:
                return cls(name)
            @staticmethod
            def version(major: int) -> str:
                return f"{major}.0"
            def renamed(self, name: str) -> Self:
                return type(self)(name)
        """)
    module = workspace.load()
    thing = module.Thing.connect("n")
    assert isinstance(thing, module.Thing)
    assert (thing.name, thing.renamed("m").name, module.Thing.version(2)) == ("n", "m", "2.0")


def test_a_callback_is_a_plain_function_that_may_block_on_the_handle(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncHandle:
            async def double(self, number: int) -> int:
                return number * 2
        class AsyncThing:
            async def map(
                self, b: Callable[[AsyncHandle, T], Awaitable[R]],
                items: Iterable[T] | AsyncIterable[T],
            ) -> AsyncIterator[R]:
                assert isinstance(items, AsyncIterable)
                async for item in items:
                    yield await b(AsyncHandle(), item)
            async def call(self, fn: Callable[[int], Awaitable[R]] | None = None) -> R | None:
                return await fn(1) if fn else None
            async def make(self, fn: Callable[[], Awaitable[AsyncHandle]]) -> int:
                return await (await fn()).double(4)
        """)
    module = workspace.load()
    threads = []

    def work(handle: Any, number: int) -> int:
        threads.append(threading.current_thread())
        assert isinstance(handle, module.Handle)
        return int(handle.double(number))

    thing = module.Thing()
    assert list(thing.map(work, (number for number in range(3)))) == [0, 2, 4]
    assert {thread.name for thread in threads} == {"prime-worker"}
    assert thing.call() is None
    assert thing.call(lambda number: number + 1) == 2
    assert thing.make(module.Handle) == 8


def test_overloads_are_kept(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            @overload
            async def get(self, *, raw: Literal[True]) -> bytes: ...
            @overload
            async def get(self, *, raw: Literal[False] = False) -> str: ...
            async def get(self, *, raw: bool = False) -> str | bytes:
                return b"x" if raw else "x"
        """)
    thing = workspace.load().Thing()
    assert (thing.get(), thing.get(raw=True)) == ("x", b"x")
    assert "def get(self, *, raw: Literal[True]) -> bytes: ..." in workspace.text()
    assert workspace.text().count("@overload") == 2


def test_an_overload_may_give_an_async_object(workspace: Workspace) -> None:
    workspace.source(
        """
        class AsyncItem:
            def __init__(self, name: str = "") -> None:
                self.name = name
        """,
        name="item",
    )
    workspace.source("""
        from prime_made._async.item import AsyncItem
        class AsyncThing:
            @overload
            async def get(self, *, live: Literal[True]) -> AsyncItem: ...
            @overload
            async def get(self, *, live: Literal[False] = False) -> str: ...
            async def get(self, *, live: bool = False) -> str | AsyncItem:
                return AsyncItem("live") if live else "still"
            async def maybe(self, kind: int) -> str | AsyncItem | None:
                return (None, "still", AsyncItem("live"))[kind]
        """)
    thing = workspace.load().Thing()
    assert (thing.get(), thing.get(live=True).name) == ("still", "live")
    assert type(thing.get(live=True)).__name__ == "Item"
    assert (thing.maybe(0), thing.maybe(1), thing.maybe(2).name) == (None, "still", "live")
    assert "def get(self, *, live: bool = False) -> str | Item:" in workspace.text()


def test_a_generic_class_and_a_derived_class(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncReads:
            def _value(self) -> str:
                return "base"
            async def read(self) -> str:
                return self._value()
        class AsyncBox(Generic[T]):
            def __init__(self, value: T) -> None:
                self._value = value
            async def get(self) -> T:
                return self._value
        class AsyncThing(AsyncReads):
            def __init__(self, name: str) -> None:
                self._name = name
            def _value(self) -> str:
                return self._name
        """)
    module = workspace.load()
    assert module.Box(3).get() == 3
    assert module.Thing("derived").read() == "derived"
    assert isinstance(module.Thing("x"), module.Reads)


def test_an_async_iterable_class_becomes_an_iterable(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncPages:
            async def __aiter__(self) -> AsyncIterator[int]:
                yield 1
                yield 2
        """)
    assert list(workspace.load().Pages()) == [1, 2]


def test_an_async_iterator_class_becomes_an_iterator(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncCountdown:
            def __init__(self) -> None:
                self._left = 2

            async def __anext__(self) -> int:
                self._left -= 1
                if self._left < 0:
                    raise StopAsyncIteration
                return self._left
        """)
    countdown = workspace.load().Countdown()
    assert [next(countdown), next(countdown), next(countdown, None)] == [1, 0, None]
