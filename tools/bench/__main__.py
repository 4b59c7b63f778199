"""``python tools/bench [--short] [--output FILE]``: what the packages cost."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

if not __package__:
    # Run as a folder, Python puts the folder itself on the path, not the one that holds it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.import_rows import import_rows
from bench.job_rows import job_rows
from bench.plan import Plan
from bench.platform_rows import fleet_rows, throttled_rows, waiter_rows
from bench.reports import Row, as_json, as_table
from bench.stream_rows import stream_rows
from bench.stub_rows import burst_rows, create_rows, sync_rows
from bench.trace_rows import trace_rows
from bench.volume_rows import volume_rows

MEASURES = (
    create_rows,
    burst_rows,
    sync_rows,
    throttled_rows,
    waiter_rows,
    fleet_rows,
    job_rows,
    trace_rows,
    stream_rows,
    volume_rows,
    import_rows,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tools/bench", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="small numbers: shows that it works, no more"
    )
    parser.add_argument("--output", type=Path, help="file for the same as JSON")
    options = parser.parse_args()
    plan = Plan.of(short=options.short)
    rows: list[Row] = []
    for measure in MEASURES:
        for row in measure(plan):
            print(row.name, file=sys.stderr)
            rows.append(row)
    print(as_table(rows))
    if options.output is not None:
        text = json.dumps(as_json(rows, short=plan.short), indent=2)
        options.output.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
