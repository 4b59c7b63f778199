"""How a sandbox's record is kept in the storage: as JSON, without its secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from prime_local.limits import Resources
from prime_local.sandboxes.record import Attachment, Owner, Sandbox, StartCommand, Status

_DATES = tuple(kept.name for kept in fields(Sandbox) if kept.name.endswith("_at"))


def dump_record(values: Mapping[str, Any]) -> str:
    """Write a record's attributes as JSON. Secrets are left out: no sandbox outlives a restart."""
    kept = {name: value for name, value in values.items() if name != "secrets"}
    return json.dumps(kept, default=_plain, separators=(",", ":"))


def load_record(text: str) -> Sandbox:
    """Read what `dump_record` wrote."""
    kept = json.loads(text)
    kept["owner"] = Owner(**kept["owner"])
    kept["resources"] = Resources(**kept["resources"])
    kept["status"] = Status(kept["status"])
    kept["labels"] = tuple(kept["labels"])
    kept["attachments"] = tuple(Attachment(**each) for each in kept.get("attachments", ()))
    if kept["start_command"] is not None:
        start = kept["start_command"]
        kept["start_command"] = StartCommand(start["executable"], tuple(start["args"]))
    for name in _DATES:
        if kept[name] is not None:
            kept[name] = datetime.fromisoformat(kept[name])
    return Sandbox(**kept)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value):
        return vars(value)
    raise TypeError(f"cannot keep {type(value).__name__}")
