"""Logs of training runs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from prime_core.models import OpenEnum, RequestModel, ResponseModel, StrEnum, UtcDatetime

__all__ = [
    "MOST_LINES",
    "EnvServer",
    "EnvServerList",
    "EnvServerLogQuery",
    "LogLevel",
    "LogLine",
    "LogQuery",
    "LogText",
    "RunComponent",
    "RunLogQuery",
]

# The most lines that one read brings.
MOST_LINES = 5000


class LogLevel(StrEnum):
    """Levels that a log can be filtered by."""

    ERROR = "ERROR"
    WARNING = "WARNING"
    SUCCESS = "SUCCESS"
    INFO = "INFO"
    DEBUG = "DEBUG"


class RunComponent(StrEnum):
    """Parts of a run that log; an SFT run shows its trainer by default, others the orchestrator."""

    ORCHESTRATOR = "orchestrator"
    TRAINER = "trainer"
    INFERENCE = "inference"
    ENV_SERVER = "env-server"


class LogText(ResponseModel):
    """The newest lines of a log.

    Attributes:
        logs: the lines, joined.
    """

    logs: str = ""


class LogQuery(RequestModel):
    """What every read of a log may ask for.

    Attributes:
        tail_lines: how many lines, from the end, 1 to 5000.
        search: only lines that hold this.
        regex: whether ``search`` is an RE2 pattern.
        level: only lines of this level.
        since_seconds: only lines of so many seconds past, 60 to 86400; the platform's default
            is 900.
    """

    omits_null: ClassVar[bool] = True
    always_sent: ClassVar[frozenset[str]] = frozenset({"tail_lines"})

    tail_lines: int = Field(default=1000, ge=1, le=MOST_LINES, strict=True)
    search: str | None = Field(default=None, min_length=1, strict=True)
    regex: bool = Field(default=False, strict=True)
    level: Annotated[LogLevel, BeforeValidator(lambda level: _upper(level))] | None = None
    since_seconds: int | None = Field(default=None, ge=60, le=86400, strict=True)

    @model_validator(mode="after")
    def _pattern(self) -> Self:
        if self.regex and self.search is None:
            raise ValueError("regex needs a pattern in search")
        return self


def _upper(level: object) -> object:
    return level.upper() if isinstance(level, str) else level


class RunLogQuery(LogQuery):
    """A read of the log of a run's component.

    Attributes:
        component: the part of the run; the platform's default is the orchestrator, for SFT the
            trainer.
        pod_index: which of its replicas, from 0.
        env_name: whose environment server; needed for ``env-server``, which it stands for, too.
    """

    component: RunComponent | None = None
    pod_index: int | None = Field(default=None, ge=0, strict=True)
    env_name: str | None = Field(default=None, min_length=1, strict=True)

    @model_validator(mode="after")
    def _environment(self) -> Self:
        if self.env_name is not None and self.component is None:
            self.component = RunComponent.ENV_SERVER
        if self.env_name is None and self.component == RunComponent.ENV_SERVER:
            raise ValueError("env_name says whose log, for the component env-server")
        if self.env_name is not None and self.component != RunComponent.ENV_SERVER:
            raise ValueError(f"env_name is for the component env-server, not {self.component}")
        return self


class EnvServerLogQuery(LogQuery):
    """A read of the log of one environment server of a shared run.

    Attributes:
        env_name: the environment.
        env_index: which of its servers, from 0.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"tail_lines", "env_index"})

    env_name: str = Field(min_length=1, strict=True)
    env_index: int = Field(default=0, ge=0, strict=True)


class EnvServer(ResponseModel):
    """A server of an environment, as far as it runs.

    Attributes:
        env_name: the environment.
        env_index: which of its servers, from 0.
        pod_name: the pod.
        status: the pod's state; may be empty.
    """

    env_name: str | None = None
    env_index: int | None = None
    pod_name: str
    status: str | None = None


class EnvServerList(ResponseModel):
    """The environment servers of a run."""

    env_servers: list[EnvServer] = Field(default_factory=list)


class LogLine(ResponseModel):
    """A line of a log, read by `parse_log_line`. Other fields of a JSON line are kept, too.

    Attributes:
        message: its text, without the prefixes that the platform adds.
        timestamp: when it was logged; None for a line that does not say.
        level: how grave it is; None for a line that does not say.
        type: what kind of line it is, such as ``progress``.
        tag: what it belongs to.
        exception: the trace of an exception.
        is_progress: whether it is only a mark of progress, such as a bar that is not full: what a
            reader can leave out.
    """

    message: str
    timestamp: UtcDatetime | None = None
    level: OpenEnum[LogLevel] | None = None
    type: str | None = None
    tag: str | None = None
    exception: Any = None
    is_progress: bool = False
