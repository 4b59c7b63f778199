"""The logs of training runs."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable

from prime_core._async.resource import AsyncResource
from prime_core.arguments import build, check_id, check_seconds
from prime_train.errors import RunTimeoutError
from prime_train.log_following import LogSource, Phase, follow_log
from prime_train.models.run_logs import (
    EnvServer,
    EnvServerList,
    EnvServerLogQuery,
    LogLevel,
    LogQuery,
    LogText,
    RunComponent,
    RunLogQuery,
)
from prime_train.models.runs import RunEnvelope
from prime_train.operations import (
    GET_RUN_ENV_SERVER_LOGS,
    GET_RUN_LOGS,
    GET_TRAINING_RUN,
    LIST_RUN_ENV_SERVERS,
)
from prime_train.run_following import is_absent, log_query, phase_of

__all__ = ["AsyncRunLogs"]

# Seconds: runs take days.
FOLLOW_TIMEOUT = 7 * 24 * 3600.0
# Of how many seconds past the platform brings lines where it is not told.
DEFAULT_SINCE = 900


class AsyncRunLogs(AsyncResource):
    """The part of `AsyncRuns` that reads logs."""

    async def get_logs(
        self,
        run_id: str,
        tail_lines: int = 1000,
        *,
        search: str | None = None,
        regex: bool = False,
        level: LogLevel | str | None = None,
        since_seconds: int | None = None,
        component: RunComponent | str | None = None,
        pod_index: int | None = None,
        env_name: str | None = None,
    ) -> str:
        """Reads the newest lines that a component of a run has logged.

        Once a run is over, only the orchestrator's lines are left. `parse_log_line` reads a line.

        Follows the documented page "hosted-training/hosted-rl".

        Args:
            run_id: the run.
            tail_lines: most lines, from the end, 1 to 5000.
            search: only lines that hold this.
            regex: whether ``search`` is an RE2 pattern.
            level: only lines of this level: ERROR, WARNING, SUCCESS, INFO or DEBUG.
            since_seconds: only lines of so many seconds past, 60 to 86400; by default 900.
            component: ``orchestrator``, ``trainer``, ``inference`` or ``env-server``; by default
                the trainer for SFT, the orchestrator for others.
            pod_index: which of the component's replicas, from 0.
            env_name: the environment whose server is meant, for ``env-server``.

        Raises:
            NotFoundError: there is no such run, or no such log: not yet, or no more.
            BadRequestError: the pattern is none.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        check_id("run_id", run_id)
        asked = build(
            RunLogQuery,
            {
                "tail_lines": tail_lines,
                "search": search,
                "regex": regex,
                "level": level,
                "since_seconds": since_seconds,
                "component": component,
                "pod_index": pod_index,
                "env_name": env_name,
            },
        )
        return await self._run_log(run_id, asked)

    async def follow_logs(
        self,
        run_id: str,
        *,
        tail_lines: int = 1000,
        search: str | None = None,
        regex: bool = False,
        level: LogLevel | str | None = None,
        since_seconds: int | None = None,
        component: RunComponent | str | None = None,
        pod_index: int | None = None,
        env_name: str | None = None,
        timeout: float = FOLLOW_TIMEOUT,
    ) -> AsyncIterator[str]:
        """Yields the lines of a component as they come, to the run's end, however it ends.

        It waits for a run that is queued or starts, and through failures that pass by themselves
        and 429s. The platform only ever shows the end of a log: it is looked at every 5 s, more
        often when lines come faster, and each line comes once. Where some may be missing all the
        same, a `LogGap` comes in their place. Read on quickly: the next look is not taken before.

        Follows the documented page "hosted-training/hosted-rl".

        Args:
            run_id: the run.
            tail_lines: how many lines of a log that is there already come first, 1 to 5000.
            search: only lines that hold this.
            regex: whether ``search`` is an RE2 pattern.
            level: only lines of this level: ERROR, WARNING, SUCCESS, INFO or DEBUG.
            since_seconds: only lines of so many seconds past, 60 to 86400; by default 900.
            component: as for `get_logs`. All but the orchestrator's log go away at the run's end.
            pod_index: which of the component's replicas, from 0.
            env_name: the environment whose server is meant, for ``env-server``.
            timeout: seconds for all of it, above 0; a week by default.

        Raises:
            RunTimeoutError: a ``TimeoutError``; the run goes on, and costs money.
            NotFoundError: there is no such run, or three minutes after its start no such log.
            BadRequestError: the pattern is none.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        check_id("run_id", run_id)
        asked = build(
            RunLogQuery,
            {
                "tail_lines": tail_lines,
                "search": search,
                "regex": regex,
                "level": level,
                "since_seconds": since_seconds,
                "component": component,
                "pod_index": pod_index,
                "env_name": env_name,
            },
        )

        async def read(lines: int) -> str:
            return await self._run_log(run_id, asked.model_copy(update={"tail_lines": lines}))

        async for line in self._follow(run_id, asked, read, timeout):
            yield line

    async def list_env_servers(self, run_id: str) -> builtins.list[EnvServer]:
        """Reads which environment servers a run has, each with its pod.

        Args:
            run_id: the run.

        Raises:
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        found = await self._transport.request(LIST_RUN_ENV_SERVERS, EnvServerList, path=path)
        return found.env_servers

    async def get_env_server_logs(
        self,
        run_id: str,
        env_name: str,
        env_index: int = 0,
        tail_lines: int = 1000,
        *,
        search: str | None = None,
        regex: bool = False,
        level: LogLevel | str | None = None,
        since_seconds: int | None = None,
    ) -> str:
        """Reads the newest lines of an environment server of a shared run.

        That of a dedicated run is read by `get_logs` with ``env_name``.

        Args:
            run_id: a run of kind ``SHARED_RFT_HOSTED``.
            env_name: the environment.
            env_index: which of its servers, from 0.
            tail_lines: most lines, from the end, 1 to 5000.
            search: only lines that hold this.
            regex: whether ``search`` is an RE2 pattern.
            level: only lines of this level: ERROR, WARNING, SUCCESS, INFO or DEBUG.
            since_seconds: only lines of so many seconds past, 60 to 86400; by default 900.

        Raises:
            NotFoundError: there is no such run, or no such log: not yet, or no more.
            BadRequestError: the run is no shared one, or the pattern is none.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        check_id("run_id", run_id)
        asked = build(
            EnvServerLogQuery,
            {
                "env_name": env_name,
                "env_index": env_index,
                "tail_lines": tail_lines,
                "search": search,
                "regex": regex,
                "level": level,
                "since_seconds": since_seconds,
            },
        )
        return await self._env_server_log(run_id, asked)

    async def follow_env_server_logs(
        self,
        run_id: str,
        env_name: str,
        env_index: int = 0,
        *,
        tail_lines: int = 1000,
        search: str | None = None,
        regex: bool = False,
        level: LogLevel | str | None = None,
        since_seconds: int | None = None,
        timeout: float = FOLLOW_TIMEOUT,
    ) -> AsyncIterator[str]:
        """Yields the lines of an environment server of a shared run, as `follow_logs` does.

        Args:
            run_id: a run of kind ``SHARED_RFT_HOSTED``.
            env_name: the environment.
            env_index: which of its servers, from 0.
            tail_lines: how many lines of a log that is there already come first, 1 to 5000.
            search: only lines that hold this.
            regex: whether ``search`` is an RE2 pattern.
            level: only lines of this level: ERROR, WARNING, SUCCESS, INFO or DEBUG.
            since_seconds: only lines of so many seconds past, 60 to 86400; by default 900.
            timeout: seconds for all of it, above 0; a week by default.

        Raises:
            RunTimeoutError: a ``TimeoutError``; the run goes on, and costs money.
            NotFoundError: there is no such run, or three minutes after its start no such log.
            BadRequestError: the run is no shared one, or the pattern is none.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        check_id("run_id", run_id)
        asked = build(
            EnvServerLogQuery,
            {
                "env_name": env_name,
                "env_index": env_index,
                "tail_lines": tail_lines,
                "search": search,
                "regex": regex,
                "level": level,
                "since_seconds": since_seconds,
            },
        )

        async def read(lines: int) -> str:
            asked_now = asked.model_copy(update={"tail_lines": lines})
            return await self._env_server_log(run_id, asked_now)

        async for line in self._follow(run_id, asked, read, timeout):
            yield line

    async def _run_log(self, run_id: str, asked: RunLogQuery) -> str:
        found = await self._transport.request(
            GET_RUN_LOGS, LogText, path={"run_id": run_id}, query=log_query(asked)
        )
        return found.logs

    async def _env_server_log(self, run_id: str, asked: EnvServerLogQuery) -> str:
        found = await self._transport.request(
            GET_RUN_ENV_SERVER_LOGS, LogText, path={"run_id": run_id}, query=log_query(asked)
        )
        return found.logs

    async def _follow(
        self,
        run_id: str,
        asked: LogQuery,
        read: Callable[[int], Awaitable[str]],
        timeout: float,
    ) -> AsyncIterator[str]:
        check_seconds("timeout", timeout)
        status: str | None = None

        async def phase() -> Phase:
            nonlocal status
            path = {"run_id": run_id}
            found = await self._transport.request(GET_TRAINING_RUN, RunEnvelope, path=path)
            status = str(found.run.status)
            return phase_of(status)

        source = LogSource(
            phase=phase,
            read=read,
            is_absent=is_absent,
            late=lambda: RunTimeoutError(run_id, status, "its log was followed long enough"),
            newest=asked.tail_lines,
            window=asked.since_seconds or DEFAULT_SINCE,
        )
        async for line in follow_log(source, timeout):
            yield line
