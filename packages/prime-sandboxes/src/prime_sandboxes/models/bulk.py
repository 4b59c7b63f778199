"""Bodies of the calls on many sandboxes at once."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, field_validator, model_validator

from prime_core.models import RequestModel, ResponseModel


class BatchSandboxStatusRequest(RequestModel):
    """Asks for the states of many sandboxes.

    Attributes:
        sandbox_ids: 1 to 100 different ids.
    """

    sandbox_ids: list[str] = Field(min_length=1, max_length=100)

    @field_validator("sandbox_ids")
    @classmethod
    def _refuse_repeats(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("a sandbox id is repeated")
        return value


class BulkDeleteSandboxRequest(RequestModel):
    """Which sandboxes to delete. Follows the page "sandboxes/lifecycle", "Delete".

    A request with neither ids nor labels deletes every active sandbox in its scope.

    Attributes:
        sandbox_ids: 1 to 500 ids. Excludes labels.
        labels: 1 to 50 labels; sandboxes that carry all of them are deleted.
        team_id: the team whose sandboxes are meant; needed with `all_users` or another user.
        user_id: whose sandboxes are meant, the caller's by default; others need team admin.
        all_users: the sandboxes of the whole team; needs team admin.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"all_users"})
    omits_null: ClassVar[bool] = True

    sandbox_ids: list[str] | None = Field(default=None, min_length=1, max_length=500)
    labels: list[str] | None = Field(default=None, min_length=1, max_length=50)
    team_id: str | None = None
    user_id: str | None = None
    all_users: bool = False

    @model_validator(mode="after")
    def _check_choice(self) -> BulkDeleteSandboxRequest:
        if self.sandbox_ids is not None and self.labels is not None:
            raise ValueError("give sandbox_ids or labels, not both")
        return self


def _text_entries(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if isinstance(item, str)}


class BulkDeleteSandboxResponse(ResponseModel):
    """What a bulk deletion did.

    Attributes:
        succeeded: ids that were deleted.
        failed: for each other id a dict with `sandbox_id` and `error`. Entries of a dict that are
            not text are dropped.
        message: the outcome in words.
    """

    succeeded: list[str]
    failed: list[Annotated[dict[str, str], BeforeValidator(_text_entries)]]
    message: str
