"""Routes of evaluations."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.control import scope_of
from prime_local.errors import PlatformError
from prime_local.evaluations.hosted import MODELS
from prime_local.evaluations.record import Evaluation


async def create_evaluation(call: Call) -> Reply:
    evaluations = call.core.recording.evaluations
    evaluation = evaluations.create(call.body, scope_of(call, call.body))
    await call.core.saved()
    wire = evaluation.to_wire(evaluations.viewer_url(evaluation))
    told = ("evaluation_id", "name", "status", "eval_type", "environment_ids", "suite_id")
    return Reply({name: wire[name] for name in (*told, "run_id", "viewer_url", "created_at")}, 201)


async def list_evaluations(call: Call) -> Reply:
    query, evaluations = call.parameters, call.core.recording.evaluations
    found = evaluations.select(scope_of(call, query), query)
    skip, limit = query["skip"], query["limit"]
    rows = [each.to_wire(evaluations.viewer_url(each)) for each in found[skip : skip + limit]]
    return Reply({"evaluations": rows, "total": len(found), "skip": skip, "limit": limit})


async def delete_evaluation(call: Call) -> Reply:
    _delete(call, _evaluation(call))
    await call.core.saved()
    return Reply({})


async def bulk_delete_evaluations(call: Call) -> Reply:
    evaluations = call.core.recording.evaluations
    gone, left = [], []
    for evaluation_id in dict.fromkeys(call.body["evaluation_ids"]):
        try:
            _delete(call, evaluations.get(evaluation_id))
        except PlatformError:
            left.append(evaluation_id)
        else:
            gone.append(evaluation_id)
    await call.core.saved()
    return Reply(
        {
            "success_count": len(gone),
            "failure_count": len(left),
            "successful_ids": gone,
            "failed_ids": left,
        }
    )


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


async def create_hosted_evaluation(call: Call) -> Reply:
    made = call.core.recording.hosted.create(call.body, scope_of(call, call.body))
    await call.core.saved()
    ids = [each.id for each in made]
    hosted = made[0].hosted or {}
    return Reply(
        {
            "evaluation_id": ids[0],
            "evaluation_ids": ids if len(ids) > 1 else None,
            "status": made[0].status.value,
            "sandbox_id": hosted.get("sandbox_id"),
            "error": None,
        },
        201,
    )


async def list_hosted_evaluation_models(call: Call) -> Reply:
    return Reply({"models": [{"id": model} for model in MODELS]})


async def cancel_hosted_evaluation(call: Call) -> Reply:
    evaluation = _evaluation(call)
    call.core.recording.hosted.cancel(evaluation)
    await call.core.saved()
    return Reply(
        {
            "success": True,
            "message": "Evaluation cancelled",
            "evaluation_id": evaluation.id,
            "status": evaluation.status.value,
        }
    )


async def get_hosted_evaluation_logs(call: Call) -> Reply:
    evaluation = _evaluation(call)
    log = call.core.recording.hosted.log(evaluation)
    sandbox_id = (evaluation.hosted or {}).get("sandbox_id")
    return Reply({"logs": log, "evaluation_id": evaluation.id, "sandbox_id": sandbox_id})


async def put_hosted_evaluation_logs(call: Call) -> Reply:
    call.core.recording.hosted.store_log(_evaluation(call), call.body["logs"])
    await call.core.saved()
    return Reply({})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_evaluations,
        create_evaluation,
        bulk_delete_evaluations,
        get_evaluation,
        update_evaluation,
        finalize_evaluation,
        push_evaluation_samples,
        get_evaluation_samples,
        delete_evaluation,
        create_hosted_evaluation,
        list_hosted_evaluation_models,
        cancel_hosted_evaluation,
        get_hosted_evaluation_logs,
        put_hosted_evaluation_logs,
    )
}


def _evaluation(call: Call) -> Evaluation:
    return call.core.recording.evaluations.get(call.parameters["evaluation_id"])


def _delete(call: Call, evaluation: Evaluation) -> None:
    call.core.recording.hosted.forget(evaluation.id)
    call.core.recording.evaluations.delete(evaluation)
