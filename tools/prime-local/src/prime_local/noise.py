"""Noise: what a newer server might add to its answers, and clients must not stumble over."""

from __future__ import annotations

import json
from typing import Any

NOISE_HEADERS = {"X-Prime-Noise": "1"}
_FIELD = "noiseAdded"
_VALUE = {"by": "prime-local", "items": [1, "two", None]}
# The caller's own names and values live in these.
_FREE_FORM = frozenset(
    {
        "advancedConfigs",
        "content",
        "context",
        "environmentVars",
        "metadata",
        "metrics",
        "probabilities",
        "runConfig",
        "secrets",
        "tool_calls",
        "tool_definitions",
    }
)
# Their names are the caller's own, their values ours.
_MAPS = frozenset({"answers"})
_STATES = {"PENDING": "QUEUED_NOISE", "PROVISIONING": "WARMING_NOISE"}
# Field 1000 of a protobuf message, which none of ours has: a varint, and then a string.
_PROTO_FIELD = b"\xc0\x3e\x2a\xc2\x3e\x05noise"


def add_noise(body: Any) -> Any:
    """Return a JSON answer with unknown fields in every object and unknown enum values.

    States on the way to RUNNING get names that nobody knows, except while an image is built,
    since only PENDING says so; an end without a reason gets one.
    """
    if isinstance(body, list):
        return [add_noise(item) for item in body]
    if not isinstance(body, dict):
        return body
    noisy = {name: _noisy_field(name, value) for name, value in body.items()}
    building = body.get("pendingImageBuildId") or body.get("pending_image_build_id")
    if body.get("status") in _STATES and not building:
        noisy["status"] = _STATES[body["status"]]
    if body.get("terminatedAt") and body.get("terminationReason") is None:
        noisy["terminationReason"] = "noise_reason"
    noisy[_FIELD] = _VALUE
    return noisy


def _noisy_field(name: str, value: Any) -> Any:
    if name in _MAPS and isinstance(value, dict):
        return {key: add_noise(each) for key, each in value.items()}
    return value if name in _FREE_FORM else add_noise(value)


def add_stream_noise(message: bytes, codec: str) -> bytes:
    """Return an encoded message of a command's stream with unknown fields."""
    if codec == "proto":
        return message + _PROTO_FIELD
    return json.dumps({**json.loads(message), _FIELD: _VALUE}, separators=(",", ":")).encode()
