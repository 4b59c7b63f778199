"""Routes of wallets and of the cost of runs."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply


async def get_wallet(call: Call) -> Reply:
    query = call.parameters
    team_id = query.get("teamId") or None
    wallets = call.core.rentals.wallets
    rows = wallets.rows(team_id)
    first = query["offset"]
    return Reply(
        {
            "wallet_id": wallets.wallet_id(team_id),
            "team_id": team_id,
            "balance_usd": float(wallets.balance(team_id)),
            "currency": "USD",
            "total_billings": len(rows),
            "recent_billings": [row.to_wire() for row in rows[first : first + query["limit"]]],
        }
    )


async def get_run_usage(call: Call) -> Reply:
    return Reply(call.core.rentals.runs.to_wire(call.parameters["run_id"]))


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler for handler in (get_wallet, get_run_usage)
}
