"""Sends to a whole node, alone and while people look at it."""

from dataclasses import replace

from bench.context import Context
from bench.model import Case, Contestant, Sample
from bench.whole_node import WholeNode

ALONE, WATCHED = "nobody looks", "console open, scraped"
_CLIENTS = 4
_SECONDS, _QUICK_SECONDS = 15.0, 5.0


def watched(context: Context) -> None:
    """The same sends with and without two pages of the console open and a scrape each second."""
    if not context.wants("admin.watched"):
        return
    node = WholeNode(context.fresh("watched"))
    shape = replace(context.shape(_CLIENTS), seconds=_QUICK_SECONDS if context.quick else _SECONDS)
    try:
        node.start()
        node.send(
            replace(shape, seconds=2.0)
        )  # single ones: what batches leave to be written would stall the first round

        def alone() -> Sample:
            return node.send(shape)

        def looked_at() -> Sample:
            with node.watched():
                return node.send(shape)

        contestants = [Contestant(ALONE, alone), Contestant(WATCHED, looked_at)]
        title = f"Single sends, {_CLIENTS} clients, to `tandem up`"
        context.run([Case("admin.watched", title, "p99_us", contestants, rounds=4)])
    finally:
        node.server.discard()
