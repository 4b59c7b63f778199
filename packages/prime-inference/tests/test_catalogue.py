"""The catalogue of models."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from raw_server import RawServer, answer

from prime_core import AsyncAPIClient, Config
from prime_inference import (
    AsyncInferenceClient,
    InferenceClient,
    ModelNotFoundError,
    PaymentRequiredError,
)

MODEL: dict[str, Any] = {
    "id": "z-ai/glm-5.3",
    "object": "model",
    "serving": "hosted",
    "pricing": {"input_usd_per_mtok": "0.60", "output_usd_per_mtok": 0, "per_image": 1},
    "specs": {"context_window": 200000, "output_modalities": ["decisions"]},
}


@pytest.mark.parametrize(
    "body", [{"object": "list", "data": [MODEL]}, {"models": [MODEL]}, [MODEL]]
)
async def test_the_catalogue_is_read_in_every_form(
    server: RawServer, client: AsyncInferenceClient, body: object
) -> None:
    server.steps = [answer(200, body, X_Inference_Id="inf-1")]
    models = await client.models.list()
    (model,) = models
    assert (len(models), models.data) == (1, [model])
    assert (model.id, model.serving, models.inference_id) == ("z-ai/glm-5.3", "hosted", "inf-1")
    assert model.pricing is not None
    assert model.pricing.input_usd_per_mtok == Decimal("0.60")
    assert model.pricing.output_usd_per_mtok == 0
    assert model.pricing.cache_read_usd_per_mtok is None
    assert model.pricing.model_extra == {"per_image": 1}
    assert server.targets == ["GET /api/v1/models"]
    assert server.requests[0].headers["x-prime-team-id"] == "team-1"


async def test_words_that_are_new_are_kept(server: RawServer, client: AsyncInferenceClient) -> None:
    server.steps = [answer(200, {"data": [{"id": "x", "serving": "elsewhere", "new": 1}]})]
    (model,) = (await client.models.list()).data
    assert (model.serving, model.model_extra) == ("elsewhere", {"new": 1})


async def test_the_catalogue_needs_no_key(server: RawServer) -> None:
    config = Config("", inference_url=f"{server.url}/api/v1")
    server.steps = [answer(200, [])]
    async with AsyncInferenceClient(client=AsyncAPIClient(config=config)) as client:
        assert (await client.models.list()).data == []
    assert "authorization" not in server.requests[0].headers


async def test_an_id_is_sent_with_its_slashes(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(200, MODEL, X_Inference_Id="inf-2")]
    model = await client.models.get("z-ai/glm 5.3", team_id="")
    assert (model.id, model.inference_id) == ("z-ai/glm-5.3", "inf-2")
    assert server.targets == ["GET /api/v1/models/z-ai/glm%205.3"]
    assert "x-prime-team-id" not in server.requests[0].headers


@pytest.mark.parametrize("model", ["", "a//b", "../keys", "/a"])
async def test_an_id_that_would_change_the_route_is_refused(
    server: RawServer, client: AsyncInferenceClient, model: str
) -> None:
    with pytest.raises(ValueError, match="model is an id"):
        await client.models.get(model)
    assert server.requests == []


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_an_unknown_model_is_named_so(
    server: RawServer, client: AsyncInferenceClient, status: int
) -> None:
    body = {"error": {"message": "Model not found", "code": "not_found_error"}}
    server.steps = [answer(status, body, X_Inference_Id="inf-3")]
    with pytest.raises(ModelNotFoundError, match="Model not found") as caught:
        await client.models.get("no/such")
    assert (caught.value.status_code, caught.value.inference_id) == (status, "inf-3")
    assert "inference id inf-3" in str(caught.value)


async def test_other_errors_keep_their_class(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(402, {"error": {"message": "m", "code": "insufficient_funds"}})]
    with pytest.raises(PaymentRequiredError):
        await client.models.get("a/b")


def test_the_sync_client_reads_it_too(server: RawServer, sync_client: InferenceClient) -> None:
    server.steps = [answer(200, [MODEL]), answer(200, MODEL)]
    assert [model.id for model in sync_client.models.list().data] == ["z-ai/glm-5.3"]
    assert sync_client.models.get("z-ai/glm-5.3").specs is not None
