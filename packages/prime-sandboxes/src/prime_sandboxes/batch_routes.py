"""Routes that read many states at once, and platforms that lack them."""

from __future__ import annotations

from typing import Generic, TypeVar

from prime_core.errors import APIError
from prime_core.models import RequestModel, ResponseModel, encode_request
from prime_core.operations import Operation
from prime_core.transport import AsyncTransport
from prime_sandboxes.errors import BatchStatusUnsupportedError

__all__ = ["BatchRoute"]

M = TypeVar("M", bound=ResponseModel)


class BatchRoute(Generic[M]):
    """A route that an older platform may not have.

    Args:
        transport: the client's.
        operation: the row of the route.
        response: model of its answer.

    Attributes:
        missing: whether the platform was seen to lack it.
    """

    def __init__(self, transport: AsyncTransport, operation: Operation, response: type[M]) -> None:
        self._transport = transport
        self._operation = operation
        self._response = response
        self.missing = False

    async def read(self, request: RequestModel) -> M:
        """Asks the route.

        Raises:
            BatchStatusUnsupportedError: the platform has no such route.
            APIError: any other failure.
        """
        try:
            return await self._transport.request(
                self._operation, self._response, body=encode_request(request)
            )
        except APIError as error:
            if error.status_code not in (404, 405):
                raise
            self.missing = True
            unsupported = BatchStatusUnsupportedError(*error.args)
            vars(unsupported).update(vars(error))
            raise unsupported from error
