"""Which limits count for a caller: those of the account, and those of the API key."""

from __future__ import annotations

from dataclasses import dataclass

from prime_compute.models.account import AccountLimits, KeyLimits, Whoami

__all__ = ["EffectiveLimits", "effective_limits"]


@dataclass(frozen=True)
class EffectiveLimits:
    """What a caller may have at once, and how fast; None is no limit.

    Attributes:
        concurrent_sandboxes: sandboxes at once.
        sandbox_creations_per_hour: creations in an hour.
        sandbox_creations_per_10_s: creations in ten seconds.
        sandbox_cpu_cores: CPU cores of all sandboxes.
        concurrent_vm_sandboxes: sandboxes that are virtual machines, at once.
        sandbox_gpus: GPUs of all sandboxes.
        concurrent_tunnels: tunnels at once.
        tunnel_creations_per_hour: creations of tunnels in an hour.
        tunnel_ttl_hours: the longest life of a tunnel.
    """

    concurrent_sandboxes: int | None
    sandbox_creations_per_hour: int | None
    sandbox_creations_per_10_s: int | None
    sandbox_cpu_cores: int | None
    concurrent_vm_sandboxes: int | None
    sandbox_gpus: int | None
    concurrent_tunnels: int | None
    tunnel_creations_per_hour: int | None
    tunnel_ttl_hours: int | None


def effective_limits(caller: Whoami) -> EffectiveLimits:
    """Tells which limits count: of the account's and the key's, the smaller.

    Args:
        caller: from `AsyncAccount.whoami`, whose team chooses the account.
    """
    account = caller.account_limits or AccountLimits()
    key = caller.key_limits or KeyLimits()
    return EffectiveLimits(
        concurrent_sandboxes=key.max_concurrent_sandboxes,
        sandbox_creations_per_hour=key.max_sandbox_creations_per_hour,
        sandbox_creations_per_10_s=account.vm_sandbox_creation_burst_limit,
        sandbox_cpu_cores=_smaller(account.sandbox_total_cpu_limit, key.max_sandbox_cpu_cores),
        concurrent_vm_sandboxes=account.vm_sandbox_limit,
        sandbox_gpus=_smaller(account.vm_sandbox_gpu_limit, key.max_sandbox_gpu_count),
        concurrent_tunnels=_smaller(account.tunnel_limit, key.max_concurrent_tunnels),
        tunnel_creations_per_hour=_smaller(
            account.tunnel_creations_per_hour_limit, key.max_tunnel_creations_per_hour
        ),
        tunnel_ttl_hours=_smaller(account.tunnel_ttl_hours, key.max_tunnel_ttl_hours),
    )


def _smaller(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
