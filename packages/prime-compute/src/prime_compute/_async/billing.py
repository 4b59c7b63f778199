"""The wallet, and what training runs cost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from prime_compute.models import BillingEntry, RunUsage, Wallet
from prime_compute.operations import GET_RUN_USAGE, GET_WALLET
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id
from prime_core.offsets import check_window, iterate_offsets

__all__ = ["AsyncBilling"]

# The most rows of one request.
PAGE = 100


class AsyncBilling(AsyncResource):
    """Reads the wallet and the cost of training runs. Made by `AsyncComputeClient.billing`.

    Args:
        client: the connections.
    """

    async def wallet(
        self, *, limit: int = 20, offset: int = 0, team_id: str | None = None
    ) -> Wallet:
        """Reads a wallet's balance and some of its rows, the last billed first.

        Args:
            limit: most rows to return, 1 to 100; `iter_billings` reads all of them.
            offset: rows to skip, at least 0.
            team_id: the team, by default the configured one; "" is the personal account.

        Raises:
            ForbiddenError: the caller may not see the team's wallet.
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit, most=PAGE)
        query = {"limit": limit, "offset": offset}
        return await self._transport.request(GET_WALLET, Wallet, query=query, team=team_id)

    async def iter_billings(self, *, team_id: str | None = None) -> AsyncIterator[BillingEntry]:
        """Reads all rows of a wallet, the last billed first.

        Args:
            team_id: as for `wallet`.
        """

        async def fetch(offset: int) -> tuple[Sequence[BillingEntry], int]:
            wallet = await self.wallet(limit=PAGE, offset=offset, team_id=team_id)
            return wallet.recent_billings, wallet.total_billings

        async for entry in iterate_offsets(fetch, PAGE, lambda entry: entry.id):
            yield entry

    async def run_usage(self, run_id: str) -> RunUsage:
        """Reads the tokens and the cost of a training run so far.

        Args:
            run_id: the run.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        return await self._transport.request(
            GET_RUN_USAGE, RunUsage, path={"run_id": check_id("run_id", run_id)}
        )
