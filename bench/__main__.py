"""The command: `python -m bench`."""

import argparse
import json
import sys
import time
from pathlib import Path

from bench.context import Context, scratch
from bench.goals import standings
from bench.groups import GROUPS
from bench.machine import describe
from bench.table import lines

_LATEST = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """Measure, show, and write down."""
    options = _options()
    begun = time.monotonic()
    with scratch(options.directory) as directory:
        context = Context(
            rounds=options.rounds or (2 if options.quick else 5),
            quick=options.quick,
            selected=options.only or [],
            directory=directory,
        )
        context.results.machine = describe(directory)
        context.say(f"compiled code is ready after {float(context.worker('warm')):.1f} s")
        for name, group in GROUPS.items():
            if context.wants(name):
                context.say(f"[{time.monotonic() - begun:4.0f} s] {name}")
                group(context)
    goals = standings(context.results)
    print("\n".join(lines(context.results, goals)))
    document = {
        **context.results.as_json(),
        "goals": [
            {"goal": goal.goal, "what": goal.what, "reached": goal.reached, "target": goal.target, "met": goal.met}
            for goal in goals
        ],
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(document, indent=1))
    context.say(f"{time.monotonic() - begun:.0f} s; all samples are in {options.json}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the store and its peers.")
    parser.add_argument("--quick", action="store_true", help="short rounds, less data: under three minutes")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"one of {', '.join(GROUPS)}, or a case: send.64"
    )
    parser.add_argument("--rounds", type=int, help="rounds of each case (5; quick: 2)")
    parser.add_argument("--json", type=Path, default=_LATEST, help="where the samples go")
    parser.add_argument(
        "--directory", type=Path, help="where the data goes while it is measured (the temporary directory)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
