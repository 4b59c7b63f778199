"""What the platform and its launcher agree on."""

from __future__ import annotations

# The longest packet on the socket between them.
PACKET_BYTES = 65536
