"""Many short-lived sandboxes, of which none is left running."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import Self

from prime_core.batching import Batcher
from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    ConfigurationError,
    NotFoundError,
    PaymentRequiredError,
    ServerError,
    UnauthorizedError,
)
from prime_core.progress import ItemProgress
from prime_core.reaper import Obligation, reaper
from prime_core.sync import across
from prime_core.termination import CancelOnTermination, ExitOnTermination
from prime_core.work_streams import CANCEL_GRACE, WorkStream
from prime_sandboxes.arguments import check_count
from prime_sandboxes.errors import FleetCleanupError, SandboxNotRunningError
from prime_sandboxes.fleet_labels import FLEET_LABEL
from prime_sandboxes.models import CommandResponse, CreateSandboxRequest, Sandbox
from prime_sandboxes.outcomes import Outcome

if TYPE_CHECKING:
    from prime_sandboxes._async.sandbox_client import AsyncSandboxClient

__all__ = ["AsyncFleet", "AsyncSandboxHandle"]

logger = logging.getLogger("prime_sandboxes")

T = TypeVar("T")
R = TypeVar("R")

# Deletes are collected until so many, or so long, are waiting.
DELETE_BATCH = 100
DELETE_DELAY = 1.0
# Failures of the platform, after which a fresh sandbox may do better.
_WORTH_A_RETRY = (SandboxNotRunningError, APIConnectionError, APIResponseError, ServerError)
# Failures of a create that no other item will escape.
_HOPELESS = (UnauthorizedError, PaymentRequiredError, ConfigurationError)


class AsyncSandboxHandle:
    """A running sandbox in the hands of a fleet's function.

    Args:
        client: the client that it belongs to.
        sandbox: the sandbox as it was created.
    """

    def __init__(self, client: AsyncSandboxClient, sandbox: Sandbox) -> None:
        self._client = client
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        """The sandbox's id."""
        return self._sandbox.id

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox as it was created."""
        return self._sandbox

    @property
    def client(self) -> AsyncSandboxClient:
        """The client, for all that takes the id of a sandbox, such as its files."""
        return self._client

    async def execute_command(
        self,
        command: str,
        working_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
    ) -> CommandResponse:
        """Runs a command in the sandbox; as the client's method of that name.

        Args:
            command: a bash command line.
            working_dir: where to run it, a path in the sandbox.
            env: further environment variables.
            timeout: seconds that the command may run, above 0; 300 by default.
            user: an account of the sandbox to run it as.

        Returns:
            Standard output, standard error and exit code.

        Raises:
            CommandTimeoutError: the limit was reached; it holds the output so far.
            SandboxNotRunningError: the sandbox does not run any more.
            APIError: any other failure.
        """
        return await self._client.execute_command(self.id, command, working_dir, env, timeout, user)

    def __repr__(self) -> str:
        return f"AsyncSandboxHandle(id={self.id!r})"


class AsyncFleet:
    """Runs a function in one fresh sandbox an item, many at a time.

    Use it as a context manager. However it is left, by its end, an exception, a
    cancellation, Ctrl-C, SIGTERM or SIGHUP, every sandbox that it made is deleted: on a
    thread of its own, waited for by the fleet's end and by the interpreter's exit. The
    signals are minded where the fleet is entered in the main thread and the program has no
    handler of its own for them; in another thread a `RuntimeWarning` says that they are not.
    Made by `AsyncSandboxClient.fleet`.

    Args:
        client: the client that makes the sandboxes.
        limit: the most sandboxes that live at once, from before a create is sent until the
            delete is confirmed; at least 1.
        labels: labels for each sandbox, besides the fleet's own.
    """

    def __init__(self, client: AsyncSandboxClient, limit: int, labels: list[str]) -> None:
        check_count("limit", limit, least=1)
        self._client = client
        self._limit = limit
        self._labels = labels
        self._label = f"{FLEET_LABEL}{uuid.uuid4()}"
        self._slots = asyncio.Semaphore(limit)
        self._streams: list[WorkStream[Any, Any]] = []
        self._obligations: dict[Obligation, str | None] = {}  # with the sandbox's id once known
        self._undeleted: list[str] = []
        self._guard = CancelOnTermination()
        self._main_thread_guard = ExitOnTermination()  # for the sync twin, see `prime_core.sync`
        self._open = False
        # It lives on the reaper's loop. A fleet that is short of places doesn't wait for a
        # hundred deletes.
        self._deletes: Batcher[str, None] = Batcher(
            self._delete_batch, size=min(DELETE_BATCH, max(1, limit // 4)), delay=DELETE_DELAY
        )

    @property
    def label(self) -> str:
        """The label that all sandboxes of this fleet carry, and no others."""
        return self._label

    def map(
        self,
        fn: Callable[[AsyncSandboxHandle, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        request: CreateSandboxRequest | Callable[[T], CreateSandboxRequest],
        ordered: bool = False,
        retries: int = 0,
        raise_errors: bool = False,
        progress: bool = False,
    ) -> AsyncIterator[Outcome[T, R]]:
        """Calls a function for each item, in a sandbox of its own, and streams the outcomes.

        Items are pulled as outcomes are taken, so that they may be endless. Breaking out of
        the loop leaves the work under way until the fleet is left. An `Exception`
        of the function is its item's outcome; anything else that it raises, such as
        `SystemExit`, ends the fleet. So does a create that fails for a reason that holds for
        all: no or a wrong key, no balance.

        Args:
            fn: gets the running sandbox and the item.
            items: what to work on.
            request: the sandbox to create, or a function that makes it for an item; without
                an ``idempotency_key``, since a fleet makes its own.
            ordered: hands the outcomes out in the items' order.
            retries: how often an item is tried again in a fresh sandbox after a failure of
                the platform; the function's own exceptions are not.
            raise_errors: raises an item's error in place of handing its outcome out, which
                ends the fleet.
            progress: shows a bar, if rich is installed and the output is a terminal or a
                notebook.

        Returns:
            The outcomes, one an item, as they come.

        Raises:
            RuntimeError: the fleet is not entered.
            ValueError: a request with an idempotency key, or negative ``retries``.
        """
        if not self._open:
            raise RuntimeError("use the fleet as a context manager: enter it before map()")
        check_count("retries", retries, least=0)
        if isinstance(request, CreateSandboxRequest):
            self._labelled(request)
        elif not callable(request):
            raise TypeError("request is a CreateSandboxRequest, or a function that makes one")

        async def guarded(sandbox: AsyncSandboxHandle, item: T) -> R:
            try:
                return await fn(sandbox, item)
            except asyncio.CancelledError as error:
                if stream.stopped:
                    raise
                # The function's own affair: nobody asked this work to stop.
                raise RuntimeError("the function was cancelled from within") from error

        async def work(item: T, deliver: Callable[[Outcome[T, R]], None]) -> None:
            await self._work(guarded, item, request, retries, deliver)

        stream: WorkStream[T, Outcome[T, R]] = WorkStream(
            work,
            items,
            window=2 * self._limit,
            ordered=ordered,
            raise_errors=raise_errors,
            progress=ItemProgress(progress, "sandboxes", items),
        )
        self._streams.append(stream)
        return stream

    def _labelled(self, request: CreateSandboxRequest) -> CreateSandboxRequest:
        if request.idempotency_key is not None:
            raise ValueError("a fleet makes its own idempotency keys; leave it out of the request")
        labels = dict.fromkeys([*request.labels, *self._labels, self._label])
        return request.model_copy(update={"labels": list(labels)})

    async def _work(
        self,
        fn: Callable[[AsyncSandboxHandle, T], Awaitable[R]],
        item: T,
        request: CreateSandboxRequest | Callable[[T], CreateSandboxRequest],
        retries: int,
        deliver: Callable[[Outcome[T, R]], None],
    ) -> None:
        """Tries an item until it is done; the outcome is out before the sandbox is deleted."""
        for attempt in range(1, retries + 2):
            outcome: Outcome[T, R] = Outcome(item, attempts=attempt)
            began = time.monotonic()
            async with self._slots:
                outcome.timings.queued = time.monotonic() - began
                obligation = self._owe()
                try:
                    await self._try(fn, outcome, request, obligation)
                    again = attempt <= retries and isinstance(outcome.error, _WORTH_A_RETRY)
                    if not again:
                        deliver(outcome)
                finally:
                    # Also when cancelled: then nobody waits here, but the fleet's end does.
                    deleting = obligation.call_in() if obligation.owed else None
                if deleting is not None:
                    await self._confirmed(across(deleting), outcome.sandbox_id)
                self._obligations.pop(obligation, None)
            if not again:
                return

    def _owe(self) -> Obligation:
        async def nothing() -> None:
            """There is nothing to undo before the create."""

        obligation = reaper.owe(self._client._transport, "A fleet's sandbox", nothing)
        self._obligations[obligation] = None
        return obligation

    async def _try(
        self,
        fn: Callable[[AsyncSandboxHandle, T], Awaitable[R]],
        outcome: Outcome[T, R],
        request: CreateSandboxRequest | Callable[[T], CreateSandboxRequest],
        obligation: Obligation,
    ) -> None:
        """One attempt: creates a sandbox, waits for it, calls the function."""
        timings = outcome.timings
        began = time.monotonic()
        try:
            wanted = request if isinstance(request, CreateSandboxRequest) else request(outcome.item)
            sandbox = await self._client._create(
                self._labelled(wanted), obligation, self._deletes.submit
            )
        except _HOPELESS:
            raise
        except Exception as error:
            outcome.error = error
            return
        outcome.sandbox_id = self._obligations[obligation] = sandbox.id
        timings.created = time.monotonic() - began
        try:
            began = time.monotonic()
            await self._client.wait_for_creation(sandbox.id)
            timings.started = time.monotonic() - began
            began = time.monotonic()
            try:
                outcome.value = await fn(AsyncSandboxHandle(self._client, sandbox), outcome.item)
            finally:
                timings.worked = time.monotonic() - began
        except Exception as error:
            outcome.error = error

    async def _confirmed(self, deleting: Awaitable[None], sandbox_id: str | None) -> None:
        try:
            await deleting
        except Exception:  # logged by the reaper
            self._undeleted.append(sandbox_id or "unknown")

    async def _delete_batch(self, sandbox_ids: list[str]) -> Mapping[str, BaseException | None]:
        """Deletes sandboxes on the reaper's loop; what is not confirmed is asked for singly."""
        answer = await self._client.bulk_delete(sandbox_ids)
        results: dict[str, BaseException | None] = dict.fromkeys(answer.succeeded)
        for sandbox_id in sandbox_ids:
            if sandbox_id not in results:
                try:
                    await self._client.delete(sandbox_id)
                except NotFoundError:
                    pass
                except APIError as error:
                    results[sandbox_id] = error
                    continue
                results[sandbox_id] = None
        return results

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "a fleet can't be pickled: two with its label would delete each other's sandboxes; "
            "pickle its client and make another fleet"
        )

    async def __aenter__(self) -> Self:
        self._guard.enter()
        self._client._transport.want_streams(self._limit)
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open = False
        try:
            await self._stop_work()
            await self._delete_all()
        except BaseException:
            self._guard.leave(finished=False)
            raise
        self._guard.leave()
        if self._undeleted:
            logger.error(
                "%d sandboxes of the fleet %s could not be deleted: %s",
                len(self._undeleted),
                self._label,
                ", ".join(self._undeleted[:100]),
            )
        if error is None:
            for stream in self._streams:
                if stream.fatal is not None:
                    raise stream.fatal
            if self._undeleted:
                raise FleetCleanupError(self._undeleted, self._label)

    async def _stop_work(self) -> None:
        """Cancels all work and calls in what is owed, even when this is cut short itself."""
        tasks = [task for stream in self._streams for task in stream.stop()]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CANCEL_GRACE)
        finally:
            for obligation in self._obligations:
                if obligation.owed:
                    obligation.call_in()

    async def _delete_all(self) -> None:
        """Waits for what was called in; the reaper bounds each in time."""
        waits = [
            asyncio.ensure_future(self._confirmed(across(obligation.call_in()), sandbox_id))
            for obligation, sandbox_id in self._obligations.items()
            if obligation.owed
        ]
        try:
            if waits:
                await asyncio.wait(waits)
        finally:
            for wait in waits:
                wait.cancel()
            self._obligations.clear()

    def __repr__(self) -> str:
        return f"AsyncFleet(label={self._label!r}, limit={self._limit})"
