"""Rows of a made-up API, for tests of the transport."""

from __future__ import annotations

from prime_core.models import ResponseModel
from prime_core.operations import Operation

KEY = "pit_c0ffee-0123456789-secret"

READ = Operation("read_thing", "GET", "/api/v1/thing", "safe", team="query")
READ_ONE = Operation("read_one", "GET", "/api/v1/thing/{thing_id}/part", "safe")
CREATE = Operation(
    "create_thing", "POST", "/api/v1/thing", "keyed", team="body", key_field="idempotency_key"
)
POKE = Operation("poke_thing", "POST", "/api/v1/poke", "unsafe")
DELETE = Operation("delete_thing", "DELETE", "/api/v1/thing/{thing_id}", "safe")


class Thing(ResponseModel):
    id: str
