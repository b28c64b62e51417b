"""Pulls of raw records in answers of 1 MiB, beside the most that grpcio can send."""

from collections.abc import Callable
from functools import partial

from bench.context import Context
from bench.generators import per_gigabyte
from bench.model import Case, Contestant, Sample
from bench.peers.echo import bare_grpcio
from bench.store import TRANSPORTS, Store, pull_request

_MESSAGES = 400_000
_IN_FLIGHT = 4


def pulls(context: Context) -> None:
    """Unary, and streamed; the store on either transport."""
    messages = _MESSAGES // 4 if context.quick else _MESSAGES
    makers = [partial(_store, context, transport) for transport in TRANSPORTS]
    with (
        context.running(makers) as stores,
        context.running([lambda: bare_grpcio(context.fresh("grpcio"))]) as limits,
    ):
        for store in stores:
            store.fill(messages)
        request = pull_request().SerializeToString()
        unary, stream = context.shape(1, _IN_FLIGHT), context.shape(1, 1)

        def bulk(name: str, measure: Callable[[], Sample]) -> Contestant:
            return Contestant(name, lambda: per_gigabyte(measure()))

        context.run(
            [
                Case(
                    "pull.unary", f"Pull, 1 MiB an answer, {_IN_FLIGHT} in flight", "gb_s",
                    [
                        *(bulk(store.name, partial(store.pull, unary)) for store in stores),
                        *(bulk(limit.name, partial(limit.download, unary, request)) for limit in limits),
                    ],
                ),
                Case(
                    "pull.stream", "PullStream, 1 MiB an answer", "gb_s",
                    [
                        *(bulk(store.name, partial(store.pull_stream, stream)) for store in stores),
                        *(bulk(limit.name, partial(limit.download_stream, stream, request)) for limit in limits),
                    ],
                ),
            ]
        )  # fmt: skip


def _store(context: Context, transport: str) -> Store:
    return Store(context.fresh(f"store-pull-{transport}"), transport=transport)
