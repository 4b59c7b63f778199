"""Answers of evaluation models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from prime_core._async.resource import AsyncResource
from prime_core.calls import Call
from prime_core.decoding import model_reader
from prime_inference.encoding import PATIENCE
from prime_inference.errors import naming_models
from prime_inference.evaluation_requests import encode_evaluation
from prime_inference.images import Image, data_urls
from prime_inference.models import EvaluationResponse, JSONText, Question
from prime_inference.routes import evaluation_operation

__all__ = ["AsyncEvaluations"]

# What a client of the protocol says of itself.
_PROTOCOL = {
    "ai-evaluation-model-specification-version": "4",
    "ai-gateway-protocol-version": "0.0.1",
    "ai-gateway-auth-method": "api-key",
}


class AsyncEvaluations(AsyncResource):
    """Asks evaluation models typed questions. Made by `AsyncInferenceClient.evaluations`.

    Follows the documented page "api-reference/inference-evaluations".

    Args:
        client: the connections.
    """

    async def create(
        self,
        *,
        model: str,
        state: JSONText,
        questions: Mapping[str, Question],
        images: Sequence[Image] = (),
        provider_options: Mapping[str, Any] | None = None,
        gateway_protocol: bool = False,
        team_id: str | None = None,
        timeout: float | None = None,
        retry_ambiguous: bool = False,
    ) -> EvaluationResponse:
        """Has questions about one state answered, all of them together.

        It is paid for, so that it is not sent again when it may have been processed without an
        answer; when it surely was not, or was refused by a 429 or by a 503 that names a
        ``Retry-After``, it is.

        Args:
            model: id of an evaluation model, such as ``cloudflare/clef``.
            state: what to judge: text, an object or a list. The platform cuts one that is
                longer than the model can take, and does not say so.
            questions: 1 to 64 questions by ids of your own, of up to 100 ASCII letters, digits,
                ``_``, ``.`` and ``-``.
            images: up to 4 PNG, JPEG or WebP images of 4 MiB each and 8 MiB together: bytes,
                paths or data URLs.
            provider_options: options by provider; whether they are minded is not documented.
            gateway_protocol: use the path of the gateway protocol; it answers the same.
            team_id: the team that pays, by default the configured one; "" is the personal
                account.
            timeout: seconds for the whole call, above 0; 600 by default. It is without the waits
                that a 429, or a 503 with ``Retry-After``, asks for; the client's
                ``max_throttle_wait`` bounds those.
            retry_ambiguous: send it again, up to twice, even when it may have been processed
                and will be paid for each time.

        Returns:
            The answers under the ids of their questions.

        Raises:
            ModelNotFoundError: there is no such model.
            PaymentRequiredError: the account that pays is empty.
            ValueError: a documented limit is passed, named by its place, such as
                ``questions.tone.criteria``; nothing was sent.
            OSError: an image's file can't be read.
            APIError: any other failure.
        """
        urls = await asyncio.to_thread(data_urls, images) if images else []
        body = encode_evaluation(model, state, questions, urls, provider_options)
        call: Call[EvaluationResponse] = self._transport.prepare(
            evaluation_operation(
                gateway_protocol=gateway_protocol, retry_ambiguous=retry_ambiguous
            ),
            model_reader(EvaluationResponse),
            body=body,
            team=team_id,
            timeout=PATIENCE if timeout is None else timeout,
            headers=_PROTOCOL if gateway_protocol else None,
        )
        with naming_models():
            response = await self._transport.perform(call)
        response.inference_id = call.inference_id
        return response
