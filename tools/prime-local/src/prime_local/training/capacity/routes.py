"""Routes of what training runs can have."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply


async def list_available_fft_models(call: Call) -> Reply:
    return Reply(call.core.recording.capacity.available_models(_team(call)))


async def list_available_gpu_types(call: Call) -> Reply:
    return Reply({"gpuTypes": call.core.recording.capacity.gpu_types(_team(call))})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler for handler in (list_available_fft_models, list_available_gpu_types)
}


def _team(call: Call) -> str | None:
    team_id: str | None = call.parameters.get("team_id")
    return team_id
