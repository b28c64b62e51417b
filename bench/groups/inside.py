"""What needs no network: appending to the mapping, and walking the log. Measured by worker processes."""

import json
from functools import partial

from bench.context import Context
from bench.generators import c_walker
from bench.model import Case, Sample, Unavailable


def append(context: Context) -> None:
    """The commit log's append, single and batched, beside a bare copy of the same bytes."""

    def together(rounds: int) -> dict[str, list[Sample]]:
        return _worker(context, "append", str(context.fresh("append")), str(rounds))

    context.run([Case("append.1k", "Append to the mapping alone, 1 KiB bodies, CPU", "us", together=together)])


def walk(context: Context) -> None:
    """The walker with checksums and all fields, beside the same in C."""
    try:
        library = str(c_walker())
    except Unavailable as error:
        context.miss(error)
        library = ""

    def together(body: int, rounds: int) -> dict[str, list[Sample]]:
        return _worker(context, "walk", str(body), str(rounds), library)

    context.run(
        [
            Case("walk.300", "Walk with CRC, records of 300 bytes", "gb_s", together=partial(together, 120)),
            Case("walk.1200", "Walk with CRC, records of 1.2 KiB", "gb_s", together=partial(together, 1024)),
        ]
    )


def _worker(context: Context, *arguments: str) -> dict[str, list[Sample]]:
    answer: dict[str, list[Sample]] = json.loads(context.worker(*arguments))
    return answer
