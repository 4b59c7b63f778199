"""Words to the people behind the platform."""

from __future__ import annotations

from typing import Literal

from prime_compute.models.feedback import FeedbackRequest
from prime_compute.operations import SUBMIT_FEEDBACK
from prime_core._async.resource import AsyncResource
from prime_core.models import encode_request

__all__ = ["AsyncFeedback"]


class AsyncFeedback(AsyncResource):
    """Sends feedback. Made by `AsyncComputeClient.feedback`.

    Args:
        client: the connections.
    """

    async def submit(
        self,
        message: str,
        *,
        category: Literal["bug", "feature", "general"] = "general",
        run_id: str | None = None,
        version: str = "prime-compute/0.1.0",
    ) -> None:
        """Sends feedback, once: it is not safe to repeat.

        Args:
            message: 1 to 2,048 characters.
            category: what it is about.
            run_id: the run that it is about, at most 128 characters.
            version: of the program that sends it, 1 to 64 characters.

        Raises:
            ValueError: a text that is too long, too short or no category; nothing was sent.
            APIError: any other failure.
        """
        fields = {"message": message, "category": category, "cli_version": version}
        if run_id is not None:
            fields["run_id"] = run_id
        body = encode_request(FeedbackRequest.model_validate(fields))
        await self._transport.request(SUBMIT_FEEDBACK, body=body)
