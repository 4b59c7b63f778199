"""Convert the platform contract from YAML to the JSON that prime-local ships.

    python tools/prime-local/convert_contract.py CONTRACT_FOLDER [--check]

The server loads JSON in milliseconds where YAML takes seconds, and needs no YAML parser.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

AREAS = ("sandboxes", "compute", "inference", "traces", "training")
TARGET = Path(__file__).parent / "src" / "prime_local" / "contract"


def convert(source: Path) -> str:
    """Return the JSON text for one contract file."""
    document = yaml.safe_load(source.read_text(encoding="utf-8"))
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder that holds the contract's YAML files")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    options = parser.parse_args()
    stale = []
    for area in AREAS:
        text = convert(options.folder / f"{area}.yaml")
        target = TARGET / f"{area}.json"
        if target.is_file() and target.read_text(encoding="utf-8") == text:
            continue
        stale.append(target.name)
        if not options.check:
            target.write_text(text, encoding="utf-8")
    if options.check and stale:
        print(
            f"differs from the contract: {', '.join(stale)}; run without --check", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
