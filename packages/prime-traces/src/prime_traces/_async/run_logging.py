"""An evaluation or a training run that reports to the platform while it goes on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from prime_core.handover import when_received
from prime_core.termination import SIGNALS, CancelOnTermination, ExitOnTermination
from prime_traces.models import UploadReceipt
from prime_traces.runs.descriptions import ConfigSource, EnvironmentRef, TrainingSpec
from prime_traces.runs.entries import Status
from prime_traces.runs.recorder import Recorder
from prime_traces.runs.settings import Kind, Mode, resolve

__all__ = ["AsyncRun"]


class AsyncRun:
    """A run, made by `init`: it takes what the program logs, and never holds it up for long.

    What is logged is encoded at once and sent in the background, on a thread of its own, by
    which neither a busy event loop nor its end stops it. The queue holds 256 batches and
    256 MiB; a call waits at most 5 s for room in it. What could not be sent, or not in time,
    is kept on disk, in the folder `unsent_dir`: ``traces.jsonl`` and ``episodes.jsonl`` can be
    sent later with ``TracesClient.upload_file``, ``metrics.jsonl`` holds a step a line,
    ``rejected-….jsonl`` what the platform refused, and ``run.json`` the end of the run if that
    could not be reported. A batch whose answer was lost is kept too, though it may have
    arrived; a trace that is uploaded again is a newer copy, not a second one.

    Use it as a context manager: its end finishes the run as ``completed``, an exception as
    ``failed``, Ctrl-C, SIGTERM and a cancellation as ``cancelled``. A run that its process
    leaves open is finished as ``crashed`` when the interpreter exits, within about 15 s; a
    process that is killed outright loses what waits in the queue. In a forked child it starts
    with an empty queue, and its end there does not end the run.

    Follows the documented pages "traces/uploading" and "traces/pricing-and-settings".
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._guard = CancelOnTermination()
        self._main_thread_guard = ExitOnTermination()  # for the sync twin, see `prime_core.sync`

    @classmethod
    async def init(
        cls,
        *,
        name: str | None = None,
        environments: Sequence[str | Mapping[str, str | None] | EnvironmentRef] | str | None = None,
        model: str | None = None,
        framework: str | None = None,
        description: str | None = None,
        tags: Sequence[str] | None = None,
        config: Mapping[str, object] | str | os.PathLike[str] | None = None,
        mode: str | None = None,
        team_id: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        on_error: str = "warn",
        finish_timeout: float | None = None,
        kind: str = "eval",
        id: str | None = None,
        training: TrainingSpec | None = None,
        traces_opt_out: bool | None = None,
        unsent_dir: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Makes a run at the platform, or attaches to one.

        Follows the documented page "traces/pricing-and-settings".

        Args:
            name: shown on the dashboard; made of environment and model by default.
            environments: what is evaluated or trained on: names, slugs (``owner/name``),
                mappings or `EnvironmentRef`; an evaluation needs one at least.
            model: the model; a training run needs it.
            framework: what produces the traces, such as ``verifiers``.
            description: free text.
            tags: texts to find it by.
            config: the run's configuration: JSON values, or the path of a file of at most
                256 KiB that is kept word for word. Nothing in it is redacted.
            mode: ``online`` or ``disabled``, which sends nothing; by default
                ``PRIME_RUNS_MODE``, then ``online`` where there is an API key.
            team_id: the team it belongs to, "" for the personal account; a training run needs
                one.
            api_key: the API key; by default the environment's, then the configuration file's.
            base_url: address of the platform.
            on_error: ``warn`` logs failures and keeps them in `errors`; ``raise`` also raises
                the first of them, from `flush` or `finish`.
            finish_timeout: seconds that `finish` may spend on sending; 300 by default.
            kind: ``eval`` or ``train``.
            id: an existing run to attach to: it is not described anew, and of its ends only a
                clean one is reported.
            training: figures of a training run.
            traces_opt_out: whether samples go to the platform's legacy storage and not to
                Prime Traces; by default ``PRIME_TRACES_OPT_OUT``, then ``traces_opt_out`` of
                the configuration file, then no. Not for training runs. It does not override
                the account's own setting.
            unsent_dir: parent of the folder for what can't be sent, named by the run's id;
                ``prime-runs`` in the working directory by default.

        Raises:
            ConfigurationError: the arguments, or the environment, can't make a run.
            EnvironmentResolutionError: an environment is not in the Environments Hub.
            NotFoundError: there is no run of the ``id`` to attach to.
            APIError: the platform refused the run, or could not be reached.
        """
        settings = resolve(
            name=name,
            environments=environments,
            model=model,
            framework=framework,
            description=description,
            tags=tags,
            config=config,
            mode=mode,
            team_id=team_id,
            api_key=api_key,
            base_url=base_url,
            on_error=on_error,
            finish_timeout=finish_timeout,
            kind=kind,
            id=id,
            training=training,
            traces_opt_out=traces_opt_out,
            unsent_dir=unsent_dir,
        )
        recorder = Recorder(settings)
        await recorder.create()
        when_received(keep=lambda: None, discard=recorder.abandon)
        return cls(recorder)

    @property
    def id(self) -> str:
        """The run's id; ``disabled-…`` for one that is not sent anywhere."""
        return self._recorder.id

    @property
    def name(self) -> str | None:
        """The run's name."""
        return self._recorder.name

    @property
    def url(self) -> str | None:
        """The run's page on the dashboard; None for one that is not sent anywhere."""
        return self._recorder.url

    @property
    def mode(self) -> Mode:
        """``online`` or ``disabled``."""
        return self._recorder.settings.mode

    @property
    def kind(self) -> Kind:
        """``eval`` or ``train``."""
        return self._recorder.settings.kind

    @property
    def status(self) -> Status:
        """``running``, ``completed``, ``failed``, ``cancelled`` or ``crashed``."""
        return self._recorder.status

    @property
    def finished(self) -> bool:
        """Whether it has been finished; nothing more can be logged then."""
        return self._recorder.finished

    @property
    def attached(self) -> bool:
        """Whether somebody else made the run."""
        return self._recorder.settings.attached

    @property
    def config(self) -> Mapping[str, object]:
        """The configuration that was given as values."""
        return self._recorder.settings.config

    @property
    def config_source(self) -> ConfigSource | None:
        """The configuration that was given as a file."""
        return self._recorder.settings.config_source

    @property
    def summary(self) -> dict[str, Any]:
        """The final figures so far."""
        return dict(self._recorder.summary)

    @property
    def errors(self) -> list[Exception]:
        """The first 100 failures."""
        return list(self._recorder.losses.errors)

    @property
    def receipts(self) -> list[UploadReceipt]:
        """The latest 100 receipts of Prime Traces."""
        return self._recorder.receipts

    @property
    def unsent_records(self) -> int:
        """Records and steps that were not sent, and are kept in `unsent_dir`."""
        return self._recorder.losses.unsent

    @property
    def failed_records(self) -> int:
        """Records that the platform refused or JSON has no form for; kept in `unsent_dir` too."""
        return self._recorder.losses.rejected

    @property
    def dropped_records(self) -> int:
        """Records that could be neither sent nor written to disk."""
        return self._recorder.losses.dropped

    @property
    def unsent_dir(self) -> Path | None:
        """The run's folder of what is not at the platform; None as long as there is nothing."""
        return self._recorder.losses.folder

    async def log_traces(self, traces: Iterable[object]) -> None:
        """Logs traces; each becomes part of this run.

        A failure to send them is never raised here.

        Args:
            traces: verifiers v1 records, or objects whose ``to_record()`` gives one. Episodes
                are taken too, and known by their ``traces``.

        Raises:
            RunFinishedError: the run has been finished.
            TypeError: a single record in place of several.
        """
        await self._recorder.log_records(traces)

    async def log_episodes(self, episodes: Iterable[object]) -> None:
        """Logs episodes with their traces; each becomes part of this run.

        A failure to send them is never raised here.

        Args:
            episodes: verifiers v1 records, or objects whose ``to_record()`` gives one.

        Raises:
            RunFinishedError: the run has been finished.
            TypeError: a single record in place of several.
        """
        await self._recorder.log_records(episodes, "episode")

    async def log_metrics(self, values: Mapping[str, object], *, step: int | None = None) -> None:
        """Logs figures of a step.

        A training run keeps them by step. An evaluation has no steps: the latest value of each
        name counts. Values that are not finite are left out, values that are neither number
        nor text too, with an entry in `errors`.

        Args:
            values: numbers or texts by name; arrays and tensors of one element do too.
            step: the step, from 0.

        Raises:
            RunFinishedError: the run has been finished.
            TypeError: values that are no mapping, or a step that is no whole number.
            ValueError: a step below 0, or above 2⁶³-1.
        """
        await self._recorder.log_metrics(values, step)

    def update_summary(self, values: Mapping[str, Any]) -> None:
        """Adds to the final figures, which an evaluation shows once it is finished.

        The platform has no place for those of a training run: they stay in `summary`.

        Args:
            values: JSON values by name, as `metrics.from_episodes` gives them.

        Raises:
            RunFinishedError: the run has been finished.
            TypeError: values that are no mapping.
            ValueError: ``prime_runs.traces_episodes_written``, which the SDK writes itself.
        """
        self._recorder.update_summary(values)

    async def flush(self, timeout: float = 30.0) -> bool:
        """Waits until what was logged so far is sent.

        Args:
            timeout: seconds to wait.

        Returns:
            Whether all of it was sent, in time; what was refused, or given up earlier, was not.

        Raises:
            Exception: the first failure, where the run is to raise them.
        """
        return await self._recorder.flush(timeout)

    async def finish(
        self,
        summary: Mapping[str, Any] | None = None,
        *,
        status: Status = "completed",
        error: BaseException | str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends what is left, then reports the end of the run.

        Calling it again, from whatever thread, waits for the same end: the first call counts.

        Args:
            summary: final figures, as for `update_summary`.
            status: ``completed``, ``failed``, ``cancelled`` or ``crashed``.
            error: what went wrong.
            timeout: seconds to spend on sending, over the run's ``finish_timeout``; what is
                left then is kept on disk. The report of the end is repeated while it fails,
                for 10 s of that time, or for 3 s when it is over.

        Raises:
            ValueError: another status, or a timeout below 0.
            Exception: the first failure, where the run is to raise them.
        """
        await self._recorder.finish(status, summary, error, timeout)

    async def fail(self, error: BaseException | str, *, timeout: float | None = None) -> None:
        """Finishes the run as ``failed``.

        Args:
            error: what went wrong.
            timeout: seconds to spend on sending, as for `finish`.
        """
        await self.finish(status="failed", error=error, timeout=timeout)

    async def __aenter__(self) -> Self:
        self._guard.enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._recorder.finish(_status(error), None, error, None)
        except Exception:
            self._guard.leave()
            if error is None:  # else the body's own error is the one to tell
                raise
            return
        except BaseException:
            self._guard.leave(finished=False)
            raise
        self._guard.leave()

    def __reduce__(self) -> tuple[object, ...]:
        return self._recorder.__reduce__()

    def __repr__(self) -> str:
        return f"Async{self._recorder!r}"


def _status(error: BaseException | None) -> Status:
    if error is None:
        return "completed"
    stopped = isinstance(error, (KeyboardInterrupt, asyncio.CancelledError))
    terminated = isinstance(error, SystemExit) and error.code in [128 + n for n in SIGNALS]
    return "cancelled" if stopped or terminated else "failed"
