"""The platform contract as shipped: routes, and checks of requests and answers."""

from prime_local.contract.document import Contract, Operation, RouteMatch, load_contract
from prime_local.contract.validation import ContractChecks, Problem

__all__ = [
    "Contract",
    "ContractChecks",
    "Operation",
    "Problem",
    "RouteMatch",
    "load_contract",
]
