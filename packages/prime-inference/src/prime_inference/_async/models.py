"""The catalogue of models."""

from __future__ import annotations

from prime_core._async.resource import AsyncResource
from prime_core.calls import Call
from prime_core.decoding import model_reader
from prime_inference.encoding import check_model
from prime_inference.errors import naming_models
from prime_inference.models import InferenceModel, InferenceModelList
from prime_inference.operations import GET_INFERENCE_MODEL, LIST_INFERENCE_MODELS

__all__ = ["AsyncModels"]


class AsyncModels(AsyncResource):
    """Reads the catalogue, which needs no API key. Made by `AsyncInferenceClient.models`.

    Follows the documented page "api-reference/inference-models".

    Args:
        client: the connections.
    """

    async def list(
        self, *, team_id: str | None = None, timeout: float | None = None
    ) -> InferenceModelList:
        """Reads the whole catalogue, with prices and what the models can do.

        Args:
            team_id: the team, by default the configured one, whose own models are listed too;
                "" is the personal account.
            timeout: seconds for the call, over the client's.

        Raises:
            APIError: it failed.
        """
        call: Call[InferenceModelList] = self._transport.prepare(
            LIST_INFERENCE_MODELS, model_reader(InferenceModelList), team=team_id, timeout=timeout
        )
        models = await self._transport.perform(call)
        models.inference_id = call.inference_id
        return models

    async def get(
        self, model: str, *, team_id: str | None = None, timeout: float | None = None
    ) -> InferenceModel:
        """Reads a model's entry.

        Args:
            model: its id, such as ``z-ai/glm-5.3``.
            team_id: as for `list`.
            timeout: as for `list`.

        Raises:
            ModelNotFoundError: there is no such model.
            ValueError: an impossible id; nothing was sent.
            APIError: any other failure.
        """
        call: Call[InferenceModel] = self._transport.prepare(
            GET_INFERENCE_MODEL,
            model_reader(InferenceModel),
            path={"model_id": check_model(model)},
            team=team_id,
            timeout=timeout,
        )
        with naming_models(lookup=True):
            found = await self._transport.perform(call)
        found.inference_id = call.inference_id
        return found
