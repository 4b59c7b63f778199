"""The catalogue of models."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pydantic import model_validator

from prime_core.models import OpenEnum, ResponseModel, StrEnum


class Serving(StrEnum):
    """Who runs a model."""

    HOSTED = "hosted"
    GATEWAY = "gateway"


class ModelPricing(ResponseModel):
    """What a model costs, in USD per million tokens. `None` is unknown, 0 is free.

    Attributes:
        input_usd_per_mtok: tokens that it reads.
        output_usd_per_mtok: tokens that it writes.
        cache_read_usd_per_mtok: tokens that it reads from its cache.
        cache_write_usd_per_mtok: tokens that are put into its cache.
    """

    input_usd_per_mtok: Decimal | None = None
    output_usd_per_mtok: Decimal | None = None
    cache_read_usd_per_mtok: Decimal | None = None
    cache_write_usd_per_mtok: Decimal | None = None


class ModelSpecs(ResponseModel):
    """What a model can do.

    Attributes:
        context_window: tokens that it can take and write together.
        max_output_tokens: tokens that it can write.
        supports_reasoning: whether it takes a ``reasoning_effort``.
        input_modalities: what it takes, such as ``text``.
        output_modalities: what it gives; evaluation models give ``decisions``.
    """

    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_reasoning: bool | None = None
    input_modalities: list[str] | None = None
    output_modalities: list[str] | None = None


class InferenceModel(ResponseModel):
    """A model. Follows the page "api-reference/inference-models".

    Attributes:
        id: what to pass as ``model``, exactly as it stands.
        object: ``model``.
        created: when it was made, in seconds since 1970.
        owned_by: who made it.
        display_name: a name to show; it is somebody else's text.
        serving: who runs it: ``hosted`` is the platform, ``gateway`` another provider.
        pricing: what it costs.
        specs: what it can do.
        inference_id: id of the call, to quote to the platform's support.
    """

    id: str
    object: str = "model"
    created: int | None = None
    owned_by: str | None = None
    display_name: str | None = None
    serving: OpenEnum[Serving] | None = None
    pricing: ModelPricing | None = None
    specs: ModelSpecs | None = None
    inference_id: str | None = None


class InferenceModelList(ResponseModel):
    """The catalogue, to iterate over. Follows the page "api-reference/inference-models".

    Attributes:
        object: ``list``.
        data: the models.
        inference_id: id of the call, to quote to the platform's support.
    """

    object: str = "list"
    data: list[InferenceModel]
    inference_id: str | None = None

    def __iter__(self) -> Iterator[InferenceModel]:  # type: ignore[override]  # a list's
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    @model_validator(mode="before")
    @classmethod
    def _read_other_forms(cls, data: Any) -> Any:
        """Takes the list bare, too, and under the name that other services give it."""
        if isinstance(data, list):
            return {"data": data}
        if isinstance(data, dict) and "data" not in data and "models" in data:
            return {"data" if name == "models" else name: value for name, value in data.items()}
        return data
