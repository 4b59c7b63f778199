"""A request to read or delete, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from prime_local.calls import Call
from prime_local.traces.filters import Filters, read_filters
from prime_local.traces.paging import Page

_PAGING = frozenset({"limit", "cursor"})


@dataclass(frozen=True)
class Query:
    """What is asked of the store.

    Args:
        owner: whose traces.
        target: id of the trace, episode or run that the path names, or an empty text.
        filters: the query's parameters.
        page: which part of a list; of no meaning for a route without pages.
        now: time of the request.
        max_read: characters that a search may read: all its pages, and one page.
    """

    owner: str
    target: str
    filters: Filters
    page: Page
    now: float
    max_read: tuple[int, int]


def read_query(call: Call) -> Query:
    """Read a request.

    Raises:
        PlatformError: 400 `invalid_filter` or `invalid_cursor`.
    """
    operation, contract, traces = call.operation, call.core.contract, call.core.traces
    declared = [contract.resolve(item, operation.area) for item in operation.spec["parameters"]]
    names = {item["name"] for item in declared if item["in"] == "query"}
    given = parse_qsl(call.request.rel_url.raw_query_string, keep_blank_values=True)
    if "400" not in operation.spec["responses"]:
        # Nothing can be wrong with a request to these.
        given = []
    values = {name: call.parameters[name] for name in names - _PAGING if name in call.parameters}
    filters = read_filters(names, values, given)
    path = [call.parameters[item["name"]] for item in declared if item["in"] == "path"]
    owner = traces.owner(call.request.headers.get("X-Prime-Team-ID"))
    page = Page.read(
        [operation.id, owner, path, filters.scope],
        call.parameters.get("limit", 1),
        call.parameters.get("cursor"),
    )
    assumed = call.assumptions
    return Query(
        owner=owner,
        target="".join(path),
        filters=filters,
        page=page,
        now=traces.now(),
        max_read=(assumed.search_budget, assumed.search_page),
    )
