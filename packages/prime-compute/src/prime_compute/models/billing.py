"""The wallet, and what training runs cost."""

from __future__ import annotations

from decimal import Decimal

from prime_core.exact import ExactNumbers, Price
from prime_core.models import ResponseModel, UtcDatetime


class BillingEntry(ResponseModel):
    """What one resource has cost so far.

    Attributes:
        id: names the row.
        created_at: when the resource was first billed.
        updated_at: time of the last change.
        last_billed_at: time of the last charge.
        amount_usd: USD in all.
        currency: ``USD``.
        resource_type: ``compute``, ``training``, ``disks`` and others.
        resource_id: the pod, disk, run or other resource.
    """

    id: str
    created_at: UtcDatetime
    updated_at: UtcDatetime
    last_billed_at: UtcDatetime | None = None
    amount_usd: Price
    currency: str
    resource_type: str
    resource_id: str | None = None


class Wallet(ExactNumbers, ResponseModel):
    """A wallet and its latest rows. Follows "Wallet balance + most recent billing rows".

    Attributes:
        wallet_id: names it.
        team_id: whose it is; None is personal.
        balance_usd: USD left.
        currency: ``USD``.
        total_billings: how many rows there are in all.
        recent_billings: rows, the last billed first.
    """

    wallet_id: str
    team_id: str | None = None
    balance_usd: Price
    currency: str
    total_billings: int
    recent_billings: list[BillingEntry]


class TokenUsage(ResponseModel):
    """Tokens of one kind, and what they cost.

    Attributes:
        tokens: in all.
        input_tokens: of inference only.
        output_tokens: of inference only.
        cost_usd: USD.
    """

    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Price = Decimal(0)


class RunPricing(ResponseModel):
    """USD per million tokens, fixed when the run was billed.

    Attributes:
        training_per_mtok: of tokens trained on.
        inference_input_per_mtok: of tokens read.
        inference_output_per_mtok: of tokens written.
    """

    training_per_mtok: Price | None = None
    inference_input_per_mtok: Price | None = None
    inference_output_per_mtok: Price | None = None


class RunUsage(ExactNumbers, ResponseModel):
    """Tokens and cost of a training run so far.

    Attributes:
        run_id: the run.
        run_name: its name.
        base_model: what it trains.
        status: its state.
        training: tokens trained on.
        inference: tokens read and written.
        total_tokens: both together.
        total_cost_usd: USD in all.
        pricing: the prices that this was computed with.
        record_count: records that it comes from.
    """

    run_id: str
    run_name: str | None = None
    base_model: str | None = None
    status: str | None = None
    training: TokenUsage
    inference: TokenUsage
    total_tokens: int
    total_cost_usd: Price
    pricing: RunPricing
    record_count: int = 0
