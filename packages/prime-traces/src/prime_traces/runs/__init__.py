"""Run logging: evaluations and training runs report to the platform while they go on."""

# A bare table: nothing is imported before a name of it is used (PEP 562).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from prime_traces._async.run_logging import AsyncRun as AsyncRun
    from prime_traces._sync.run_logging import Run as Run
    from prime_traces.runs import metrics as metrics
    from prime_traces.runs.descriptions import ConfigSource as ConfigSource
    from prime_traces.runs.descriptions import EnvironmentRef as EnvironmentRef
    from prime_traces.runs.descriptions import TrainingSpec as TrainingSpec
    from prime_traces.runs.errors import ConfigurationError as ConfigurationError
    from prime_traces.runs.errors import EnvironmentResolutionError as EnvironmentResolutionError
    from prime_traces.runs.errors import PrimeRunsError as PrimeRunsError
    from prime_traces.runs.errors import RecordsUnsentError as RecordsUnsentError
    from prime_traces.runs.errors import RunFinishedError as RunFinishedError
    from prime_traces.runs.starting import async_init as async_init
    from prime_traces.runs.starting import init as init

_EXPORTS = {
    "AsyncRun": "prime_traces._async.run_logging",
    "ConfigSource": "prime_traces.runs.descriptions",
    "ConfigurationError": "prime_traces.runs.errors",
    "EnvironmentRef": "prime_traces.runs.descriptions",
    "EnvironmentResolutionError": "prime_traces.runs.errors",
    "PrimeRunsError": "prime_traces.runs.errors",
    "RecordsUnsentError": "prime_traces.runs.errors",
    "Run": "prime_traces._sync.run_logging",
    "RunFinishedError": "prime_traces.runs.errors",
    "TrainingSpec": "prime_traces.runs.descriptions",
    "async_init": "prime_traces.runs.starting",
    "init": "prime_traces.runs.starting",
}

__all__ = sorted([*_EXPORTS, "metrics"])


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    if name == "metrics":
        import importlib

        return importlib.import_module("prime_traces.runs.metrics")
    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
