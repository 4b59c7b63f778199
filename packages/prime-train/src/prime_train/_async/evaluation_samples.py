"""The samples of evaluations."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id
from prime_core.decoding import read_object
from prime_core.errors import APIError
from prime_core.pagination import Page, iterate_pages
from prime_train.models.evaluations import PushedSamples, SamplePage
from prime_train.operations import GET_EVALUATION_SAMPLES, PUSH_EVALUATION_SAMPLES
from prime_train.sample_batches import MAX_PAYLOAD_BYTES, Sample, SampleCutter, cut_batches
from prime_train.sample_pushing import SampleProgress, SamplesNotStored, push_batches

__all__ = ["AsyncEvaluationSamples"]

# The most samples of a page.
PAGE = 1000
# Seconds for a request with samples: storing 25 MiB takes its time.
PUSH_TIMEOUT = 300.0


class AsyncEvaluationSamples(AsyncResource):
    """The part of `AsyncEvaluations` that pushes and reads samples."""

    async def push_samples(
        self,
        evaluation_id: str,
        samples: Iterable[Sample] | AsyncIterable[Sample],
        *,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        max_concurrent: int = 4,
        progress_callback: SampleProgress | None = None,
    ) -> PushedSamples:
        """Appends samples to an evaluation, in as few requests as they fit into.

        The samples are taken as they are needed, so that they may be more than memory holds: no
        more than ``max_concurrent`` requests of them are. A request is sent once, since nothing
        tells the platform a repeated sample from a new one: it is sent again only when it surely
        was not processed. After a failure the requests in flight are brought to their end, and
        the error tells what is stored.

        Follows the documented page "api-reference/evals/push-samples".

        Args:
            evaluation_id: an evaluation that is not closed.
            samples: mappings, or pydantic models. Usual keys are ``example_id``, ``reward``,
                ``prompt``, ``completion``, ``answer``; others are stored, too.
            max_payload_bytes: most bytes of a request, at most 25 MiB. A sample that fits into
                none is skipped and reported.
            max_concurrent: most requests at once, at least 1.
            progress_callback: called on the event loop with how many more samples are stored or
                skipped.

        Returns:
            How many are stored and how many were skipped; without samples, nothing is sent.

        Raises:
            PushSamplesError: something failed when some samples were stored, or may be.
            InvalidSampleError: a ``ValueError``; a sample is no mapping, or holds what JSON can't.
            ConflictError: the evaluation is closed.
            NotFoundError: there is no such evaluation.
            ValueError: an argument out of its range; nothing was sent.
            APIError: any other failure; nothing was stored.
            Exception: what ``samples`` or ``progress_callback`` raised.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        if isinstance(samples, (str, bytes, Mapping, BaseModel)) or not isinstance(
            samples, (Iterable, AsyncIterable)
        ):
            raise TypeError(f"samples is an iterable of samples, not a {type(samples).__name__}")
        if not 0 < max_payload_bytes <= MAX_PAYLOAD_BYTES:
            raise ValueError(
                f"max_payload_bytes is 1 to {MAX_PAYLOAD_BYTES}, not {max_payload_bytes}"
            )
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent is at least 1, not {max_concurrent}")

        async def send(body: bytes) -> None:
            call = self._transport.prepare(
                PUSH_EVALUATION_SAMPLES, read_object, path, body=body, timeout=PUSH_TIMEOUT
            )
            try:
                await self._transport.perform(call)
            except APIError as error:
                raise SamplesNotStored(error, "unknown" if call.unresolved else "no") from error

        cutter = SampleCutter(max_payload_bytes)
        return await push_batches(
            cut_batches(samples, cutter),
            cutter,
            send,
            max_concurrent=max_concurrent,
            progress=progress_callback,
        )

    async def samples(self, evaluation_id: str, *, page: int = 1, limit: int = 100) -> SamplePage:
        """Reads a page of an evaluation's samples; `iter_samples` reads all of them.

        The platform retires this storage on 2026-11-06; newer samples are traces.

        Follows the documented page "api-reference/evals/get-samples".

        Args:
            evaluation_id: the evaluation.
            page: its number, from 1.
            limit: most samples of a page, 1 to 1000.

        Raises:
            NotFoundError: there is no such evaluation.
            ValueError: an argument out of its range; nothing was sent.
            APIError: any other failure.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        if page < 1 or not 1 <= limit <= PAGE:
            raise ValueError(f"page is at least 1, limit 1 to {PAGE}")
        query = {"page": page, "limit": limit}
        return await self._transport.request(
            GET_EVALUATION_SAMPLES, SamplePage, path=path, query=query
        )

    async def iter_samples(
        self, evaluation_id: str, *, page_size: int = 100
    ) -> AsyncIterator[dict[str, Any]]:
        """Reads all samples of an evaluation, page after page, in their order.

        Args:
            evaluation_id: the evaluation.
            page_size: most samples of a page, 1 to 1000; samples may be large.
        """

        async def fetch(number: int) -> Page[tuple[int, dict[str, Any]]]:
            page = await self.samples(evaluation_id, page=number, limit=page_size)
            first = (number - 1) * page_size
            # They have no ids of their own, and are only ever appended: their place tells them.
            return Page(
                list(enumerate(page.samples, first)),
                page.total,
                first + len(page.samples) < page.total,
            )

        async for _, sample in iterate_pages(fetch, page_size, lambda placed: placed[0]):
            yield sample
