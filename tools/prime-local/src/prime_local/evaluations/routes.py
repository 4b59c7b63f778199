"""Routes of evaluations."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.control import scope_of
from prime_local.errors import PlatformError
from prime_local.evaluations.record import Evaluation


async def create_evaluation(call: Call) -> Reply:
    evaluations = call.core.recording.evaluations
    evaluation = evaluations.create(call.body, scope_of(call, call.body))
    await call.core.saved()
    wire = evaluation.to_wire(evaluations.viewer_url(evaluation))
    told = ("evaluation_id", "name", "status", "eval_type", "environment_ids", "suite_id")
    return Reply({name: wire[name] for name in (*told, "run_id", "viewer_url", "created_at")}, 201)


async def get_evaluation(call: Call) -> Reply:
    evaluation = _evaluation(call)
    return Reply(evaluation.to_wire(call.core.recording.evaluations.viewer_url(evaluation)))


async def update_evaluation(call: Call) -> Reply:
    evaluation = _evaluation(call)
    call.core.recording.evaluations.update(evaluation, call.body)
    await call.core.saved()
    return Reply(
        {
            "evaluation_id": evaluation.id,
            "name": evaluation.described["name"],
            "status": evaluation.status.value,
            "updated_at": evaluation.updated_at,
        }
    )


async def finalize_evaluation(call: Call) -> Reply:
    evaluation, evaluations = _evaluation(call), call.core.recording.evaluations
    evaluations.finalize(evaluation, (call.body or {}).get("metrics"))
    await call.core.saved()
    return Reply(
        {
            "evaluation_id": evaluation.id,
            "status": evaluation.status.value,
            "message": None,
            "viewer_url": evaluations.viewer_url(evaluation),
            **evaluation.figures(),
        }
    )


async def push_evaluation_samples(call: Call) -> Reply:
    limit = call.operation.spec["x-max-body-bytes"]
    if len(await call.request.read()) > limit:
        raise PlatformError(413, f"Samples of more than {limit} bytes")
    evaluation, samples = _evaluation(call), call.body["samples"]
    call.core.recording.evaluations.push(evaluation, samples)
    await call.core.saved()
    return Reply(
        {
            "evaluation_id": evaluation.id,
            "samples_pushed": len(samples),
            "status": evaluation.status.value,
        }
    )


async def get_evaluation_samples(call: Call) -> Reply:
    evaluation = _evaluation(call)
    samples = call.core.recording.evaluations.samples(evaluation)
    page, limit = call.parameters["page"], call.parameters["limit"]
    return Reply(
        {
            "evaluation_id": evaluation.id,
            "samples": samples[(page - 1) * limit : page * limit],
            "total": len(samples),
            "page": page,
            "limit": limit,
            "total_pages": -(-len(samples) // limit),
        }
    )


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        create_evaluation,
        get_evaluation,
        update_evaluation,
        finalize_evaluation,
        push_evaluation_samples,
        get_evaluation_samples,
    )
}


def _evaluation(call: Call) -> Evaluation:
    return call.core.recording.evaluations.get(call.parameters["evaluation_id"])
