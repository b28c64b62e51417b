"""The command: `python -m bench`."""

import argparse
import json
import resource
import signal
import sys
import time
from pathlib import Path

from bench.context import Context, scratch
from bench.goals import standings
from bench.groups import GROUPS
from bench.machine import describe
from bench.model import Unavailable
from bench.spark_scaling import scaling
from bench.table import lines

_LATEST = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """Measure, show, and write down."""
    options = _options()
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))  # by way of every `finally`: servers are ended
    _allow_many_connections()
    with scratch(options.directory) as directory:
        context = Context(
            rounds=options.rounds or (2 if options.quick else 5),
            quick=options.quick,
            selected=options.only,
            directory=directory,
        )
        context.results.machine = describe(directory)
        for name, group in GROUPS.items():
            if context.wants(name):
                context.say(f"[{time.monotonic() - begun:4.0f} s] {name}")
                try:
                    group(context)
                except Unavailable as error:
                    context.miss(error)
    goals = standings(context.results)
    model = scaling(context.results)
    print("\n".join([*lines(context.results, goals), *(model.lines if model is not None else [])]))
    document = {**context.results.as_json(), "goals": [goal.as_json() for goal in goals]}
    if model is not None:
        document["scaling"] = model.as_json()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(document, indent=1))
    context.say(f"{time.monotonic() - begun:.0f} s; all samples are in {options.json}")
    return 0


def _allow_many_connections() -> None:
    """As many open files as we may have, for the servers too: they inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _selected(name: str) -> str:
    """A group or a case; the plural of a group is understood too."""
    group, dot, case = name.partition(".")
    if group not in GROUPS:
        group = group.removesuffix("s")
    if group not in GROUPS:
        raise argparse.ArgumentTypeError(f"no group {name.partition('.')[0]}; there are {', '.join(GROUPS)}")
    return f"{group}{dot}{case}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the store and its peers.")
    parser.add_argument("--quick", action="store_true", help="short rounds, less data")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        type=_selected,
        metavar="NAME",
        help=f"one of {', '.join(GROUPS)}, or a case: send.64; may be repeated",
    )
    parser.add_argument("--rounds", type=int, help="rounds of each case (5; quick: 2)")
    parser.add_argument("--json", type=Path, default=_LATEST, help="where the samples go")
    parser.add_argument(
        "--directory", type=Path, help="where the data goes while it is measured (the temporary directory)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
