"""Settings for property tests whose time depends on what else the machine does."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

unhurried = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
