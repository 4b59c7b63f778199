"""Errors of the inference service, in the form that clients of OpenAI know."""

from __future__ import annotations

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError

# What the errors of other parts of the platform are here: type and code.
_KINDS = {
    401: ("authentication_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_funds"),
    404: (None, "not_found_error"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}
_OF_CLIENTS = ("invalid_request_error", "invalid_request")
_OF_SERVERS = ("server_error", None)


class InferenceError(PlatformError):
    """Ends a request to the inference service.

    Args:
        status: the HTTP status to answer.
        message: text for people.
        kind: `error.type`; None to leave it out.
        code: `error.code`; None to leave it out.
        param: the field of the request that is wrong, as a path such as `questions.tone.criteria`.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str | None = None,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(status, message, code=code)
        self.kind = kind
        self.param = param


def refused(param: str | None, message: str, code: str = "invalid_request") -> InferenceError:
    """The 400 for a field of a request."""
    return InferenceError(400, message, kind="invalid_request_error", code=code, param=param)


def error_body(error: PlatformError, inference_id: str) -> JsonObject:
    """Return how an error is answered."""
    if isinstance(error, InferenceError):
        kind, code, param = error.kind, error.code, error.param
    else:
        kind, code = _KINDS.get(error.status, _OF_CLIENTS if error.status < 500 else _OF_SERVERS)
        param = None
    fields = {"type": kind, "code": code, "param": param}
    text: JsonObject = {"message": str(error.detail)}
    text.update({name: value for name, value in fields.items() if value is not None})
    return {"error": text, "inference_id": inference_id}
