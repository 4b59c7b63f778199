"""Dispatching training runs: prepared, created, resumed, and never lost track of."""

from __future__ import annotations

import builtins
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from prime_core.arguments import build, check_id
from prime_core.creation import create_unkeyed, owe_later
from prime_core.errors import APIError, APITimeoutError, ForbiddenError, NotFoundError, ServerError
from prime_core.failures import advise
from prime_core.handover import when_received
from prime_core.marks import carries, described, marked, new_mark
from prime_core.models import encode_request
from prime_core.reaper import Obligation, Undo
from prime_core.sync import across
from prime_train._async.run_life import PAGE, AsyncRunLife
from prime_train._async.volumes import AsyncVolumes
from prime_train.configs.loading import MAX_GPUS, Mode, TrainConfig
from prime_train.configs.payload import build_request
from prime_train.configs.secrets import RunSecrets, given_secrets
from prime_train.configs.sizes import DEFAULT_VOLUME_SIZE, check_volume_size
from prime_train.errors import VolumeExistsError
from prime_train.models.dispatch import CreateRunRequest
from prime_train.models.run_dispatch import DispatchedRun, PrepareBody, PreparedRun, ResumeBody
from prime_train.models.runs import Run, RunKind
from prime_train.operations import (
    CREATE_TRAINING_RUN,
    DELETE_RUN,
    DELETE_TRAINING_RUN,
    PREPARE_TRAINING_RUN,
    RESUME_TRAINING_RUN,
)
from prime_train.run_refusals import explained

__all__ = ["AsyncRuns"]

logger = logging.getLogger("prime_train")

# A config that is checked for the first time can take the platform a minute.
CREATE_TIMEOUT = 120.0
PREPARE_TIMEOUT = 30.0
NO_SUCH_ROUTE = (404, 405)

Find = Callable[[], Coroutine[Any, Any, builtins.list[DispatchedRun]]]


class AsyncRuns(AsyncRunLife):
    """Dispatches and follows training runs. Made by `AsyncTrainClient.runs`.

    Follows the documented pages "hosted-training".

    Args:
        client: the connections.
    """

    async def prepare(
        self,
        mode: Mode = "rl",
        *,
        image_tag: str | None = None,
        source_ref: str | None = None,
        team_id: str | None = None,
    ) -> PreparedRun:
        """Reads which build of prime-rl a run would get. Nothing is made.

        Follows the documented page "api-reference/training/prepare-local-validation".

        Args:
            mode: ``rl`` or ``sft``.
            image_tag: build of the prime-rl image.
            source_ref: branch, tag or commit of prime-rl to lay over the image.
            team_id: the owning team; None takes the client's, "" is the personal account.

        Raises:
            ForbiddenError: ``source_ref`` is restricted.
            APIError: any other failure; 404 and 405 are those of an older platform.
        """
        body = build(PrepareBody, {"mode": mode, "image_tag": image_tag, "source_ref": source_ref})
        with explained():
            return await self._transport.request(
                PREPARE_TRAINING_RUN,
                PreparedRun,
                body=encode_request(body),
                team=team_id,
                timeout=PREPARE_TIMEOUT,
            )

    async def create(
        self,
        config: TrainConfig | CreateRunRequest,
        *,
        name: str | None = None,
        team_id: str | None = None,
        image_tag: str | None = None,
        gpu_type: str | None = None,
        volume: str | None = None,
        volume_size: str | None = None,
        source_ref: str | None = None,
        resume_from: str | None = None,
        secrets: RunSecrets | None = None,
        gpu_cap: int = MAX_GPUS,
    ) -> DispatchedRun:
        """Dispatches a run; it costs money from when its pods are ready until it ends.

        The create is sent once, under a name with a mark such as ``-3f9a2c41d0``, by which the
        run is found when the answer is lost. When the caller is cancelled meanwhile, or the
        program ends, what was dispatched is deleted.

        A volume that is named and not there is made first, with ``volume_size`` or, as documented,
        of 5 TiB, which cost about 460 USD a month. It stays when the run has ended. When the run is
        refused, or its create cancelled, such a volume is deleted again.

        Follows the documented pages "hosted-training/hosted-rl" and "hosted-training/hosted-sft".

        Args:
            config: a loaded config, or a request of `build_request`, which holds the rest.
            name: display name; the mark is added. By default the config's own.
            team_id: the owning team; None takes the client's, "" is the personal account.
            image_tag: build of the prime-rl image; ``main`` by default.
            gpu_type: GPU to run on, such as ``H200_141GB``; the platform picks one by default.
            volume: volume to mount at ``/volume``.
            volume_size: size of that volume when it is made now, such as ``500Gi``; by default
                the config's own, else ``5Ti``. One that is there keeps its size.
            source_ref: branch, tag or commit of prime-rl to lay over the image; restricted.
            resume_from: paused run to continue from, with the same model; its volume is mounted.
            secrets: secrets of the run; they are not kept, so a resume needs them again.
            gpu_cap: GPUs that the run may hold: 64, or the account's cap when it is lower.

        Returns:
            The run's id, price and own API key, and the size of a volume that was made.

        Raises:
            InvalidConfigError: the platform would refuse it; nothing was sent.
            BadRequestError: the platform refused it, and says why.
            PaymentRequiredError: the wallet or a spend limit can't pay for it.
            OnDemandAccessError: a `ForbiddenError`; on-demand training is in beta.
            VolumeBusyError: a `ConflictError`; the volume has another writer.
            ConflictError: the run to resume is not PAUSED.
            NotFoundError: there is no such run to resume.
            VolumeNotReadyError: the volume failed, or is being deleted.
            TypeError: a request, and arguments that it should hold.
            ValueError: ``volume_size`` is wrong, or comes without a volume; nothing was sent.
            APIError: any other failure.
        """
        request = _request(
            config,
            {
                "name": name,
                "team_id": team_id,
                "image_tag": image_tag,
                "gpu_type": gpu_type,
                "volume": volume,
                "source_ref": source_ref,
                "resume_from": resume_from,
                "secrets": secrets,
            },
            gpu_cap,
        )
        size = _size(config, request, volume_size)
        await self._check_runtime(request)
        if request.volume is None or request.resume_from is not None:
            return await self._dispatch(request)
        return await self._dispatch_on(request.volume, size, request)

    async def resume(
        self,
        run_id: str,
        *,
        config: TrainConfig | None = None,
        gpu_type: str | None = None,
        image_tag: str | None = None,
        secrets: RunSecrets | None = None,
    ) -> DispatchedRun:
        """Continues a PAUSED run as a new one, with an id and a folder on the volume of its own.

        It is sent once. When the answer is lost, the new run is found as the only one of the
        paused run's name, volume and owner that came since: a volume has one run at a time. When
        the caller is cancelled meanwhile, or the program ends, the run that its answer names is
        deleted; without an answer the log says that there may be one.

        Follows the documented page "hosted-training/pause-resume".

        Args:
            run_id: the paused run.
            config: an edited config, with the same model; by default the paused run's.
            gpu_type: GPU to run on; by default the paused run's.
            image_tag: build of the prime-rl image; by default the paused run's.
            secrets: secrets of the run, which the platform has not kept.

        Returns:
            The new run.

        Raises:
            ConflictError: it is not PAUSED; a `VolumeBusyError` when its volume is in use.
            NotFoundError: there is no such run.
            PaymentRequiredError: the wallet or a spend limit can't pay for it.
            APIError: any other failure.
        """
        check_id("run_id", run_id)
        paused = await self.get(run_id)
        if config is not None:
            return await self.create(
                config,
                name=config.name or paused.name,
                team_id=paused.team_id or "",
                gpu_type=gpu_type,
                image_tag=image_tag,
                resume_from=run_id,
                secrets=secrets,
            )
        body = _resume_body(gpu_type, image_tag, given_secrets(secrets))
        with explained(_values(body)):
            return await create_unkeyed(
                self._transport,
                RESUME_TRAINING_RUN,
                DispatchedRun,
                path={"run_id": run_id},
                body=encode_request(body),
                description=f"Run {paused.name or ''!r}, which continues {run_id}",
                discard=self._discard,
                find=await self._successors(paused),
                marked=False,
                timeout=CREATE_TIMEOUT,
            )

    async def _check_runtime(self, request: CreateRunRequest) -> None:
        """Asks the platform for the build, which it may refuse before anything is made."""
        try:
            await self.prepare(
                request.mode or "rl",
                image_tag=request.image_tag,
                source_ref=request.source_ref,
                team_id=request.team_id,
            )
        except (ServerError, APITimeoutError) as error:
            logger.debug("the platform could not prepare a run: %s", type(error).__name__)
        except APIError as error:
            if error.status_code not in NO_SUCH_ROUTE:
                raise

    async def _dispatch_on(self, name: str, size: str, request: CreateRunRequest) -> DispatchedRun:
        """Dispatches a run on a volume, which is made if there is none of the name."""
        volumes, team = AsyncVolumes(self._client), request.team_id
        await volumes._undone(name)
        if name in [volume.name for volume in await volumes.list(team_id=team)]:
            return await self._dispatch(request)
        owed = owe_later(self._transport, f"Volume {name!r}, made for a run,")
        running = owe_later(self._transport, f"A run on volume {name!r}")
        try:
            await volumes._create(name, size, team_id=team, obligation=owed)
        except VolumeExistsError:  # somebody has made it since
            owed.settle()
            running.settle()
            return await self._dispatch(request)
        except BaseException:
            owed.call_in()
            running.settle()
            raise
        owed.undo = partial(_undo_both, running, owed.undo)
        try:
            await volumes.wait_until_ready(name, team_id=team)
            made = await self._dispatch(request, running)
        except BaseException as error:
            owed.call_in()
            if isinstance(error, APIError):
                fate = "is deleted, unless the log says that it stays"
                advise(error, f"volume {name!r}, made for it, {fate}")
            raise
        for each in (owed, running):
            when_received(each.settle, each.call_in)
        return made.model_copy(update={"volume_created": size})

    async def _dispatch(
        self, request: CreateRunRequest, obligation: Obligation | None = None
    ) -> DispatchedRun:
        mark = new_mark()
        named = request.model_copy(update={"name": marked(request.name, mark, "run")})

        async def find() -> builtins.list[DispatchedRun]:
            page = await self.list(limit=PAGE, team_id=request.team_id)
            return [DispatchedRun(run_id=run.id) for run in page.runs if carries(run.name, mark)]

        with explained(_values(request)):
            return await create_unkeyed(
                self._transport,
                CREATE_TRAINING_RUN,
                DispatchedRun,
                body=encode_request(named, exclude={"team_id"}),
                team=request.team_id,
                description=described(request.name, mark, "run"),
                discard=self._discard,
                find=find,
                obligation=obligation,
                timeout=CREATE_TIMEOUT,
            )

    async def _successors(self, paused: Run) -> Find:
        """What looks for runs that continue a paused one, and were not there before."""
        team = paused.team_id or ""
        before = (await self.list(limit=PAGE, team_id=team)).runs
        known = {run.id for run in before}
        since = max(run.created_at for run in [paused, *before])

        async def find() -> builtins.list[DispatchedRun]:
            runs = (await self.list(limit=PAGE, team_id=team)).runs
            # An older one may only have moved up, into the page.
            fresh = [run for run in runs if run.id not in known and run.created_at >= since]
            return [
                DispatchedRun(run_id=run.id)
                for run in fresh
                if (run.name, run.user_id) == (paused.name, paused.user_id)
                and run.kind == RunKind.DEDICATED_FULL_FT
                and (await self.get(run.id)).volume_name == paused.volume_name
            ]

        return find

    async def _discard(self, made: DispatchedRun) -> None:
        """Ends a run that nobody knows of, and deletes it."""
        path = {"run_id": made.run_id}
        try:
            await self._transport.request(DELETE_TRAINING_RUN, path=path)
        except NotFoundError:
            return
        except ForbiddenError:  # older platforms leave that route to admins
            await self._transport.request(DELETE_RUN, path=path)


async def _undo_both(running: Obligation, undo: Undo) -> None:
    """Undoes a run, which keeps its volume from being deleted, and then what made the volume."""
    with contextlib.suppress(Exception):  # logged by the reaper
        await across(running.call_in())
    await undo()


def _request(
    config: TrainConfig | CreateRunRequest, given: Mapping[str, Any], gpu_cap: int
) -> CreateRunRequest:
    if isinstance(config, TrainConfig):
        return build_request(config, **given, gpu_cap=gpu_cap)
    if not isinstance(config, CreateRunRequest):
        raise TypeError(f"pass a TrainConfig or a CreateRunRequest, not {type(config).__name__}")
    beside = [name for name, value in given.items() if value is not None]
    if beside:
        raise TypeError(f"{beside[0]} belongs into the request: pass it to build_request")
    return config


def _size(
    config: TrainConfig | CreateRunRequest, request: CreateRunRequest, volume_size: str | None
) -> str:
    """The size of a volume that is made for a run.

    Raises:
        ValueError: it is none, or there is no volume.
    """
    if volume_size is None:
        in_file = config.knobs.volume_size if isinstance(config, TrainConfig) else None
        return in_file or DEFAULT_VOLUME_SIZE
    if request.volume is None:
        raise ValueError("volume_size needs volume, the name of the volume that it is the size of")
    check_volume_size(volume_size)
    return volume_size


def _resume_body(gpu_type: str | None, image_tag: str | None, secrets: RunSecrets) -> ResumeBody:
    problems = [f"{name}: {problem}" for name, problem in secrets.problems()]
    if problems:
        raise ValueError(problems[0])
    return build(
        ResumeBody,
        {
            "gpu_type": gpu_type,
            "image_tag": image_tag,
            "wandb_api_key": secrets.wandb_api_key and secrets.wandb_api_key.reveal(),
            "hf_token": secrets.hf_token and secrets.hf_token.reveal(),
            "secrets": {key: value.reveal() for key, value in secrets.values.items()} or None,
        },
    )


def _values(request: CreateRunRequest | ResumeBody) -> builtins.list[str]:
    """The secrets in a request."""
    placed = (request.wandb_api_key, request.hf_token)
    return [value for value in (*placed, *(request.secrets or {}).values()) if value]
