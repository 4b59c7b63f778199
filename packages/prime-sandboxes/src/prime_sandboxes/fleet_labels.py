"""The label that a fleet gives its sandboxes, and no others."""

from __future__ import annotations

__all__ = ["FLEET_LABEL"]

# What it begins with.
FLEET_LABEL = "prime-fleet:"
