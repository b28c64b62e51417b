"""Classic clients: sends and pulls over the remoting protocol, beside RocketMQ's own brokers."""

from collections.abc import Callable
from functools import partial

from bench.classic_store import ClassicStore
from bench.context import Context
from bench.generators import LoadShape
from bench.model import Case, Contestant
from bench.payloads import BATCH
from bench.peers.rocketmq import RocketMQ

ROCKETMQ_VERSIONS = ("4.9.7", "5.3.2")
NEWEST = f"RocketMQ {ROCKETMQ_VERSIONS[-1]}"
_IN_FLIGHT = 8
_PULLED = 32
"""Messages of one answer: as many as clients ask for."""


def classic(context: Context) -> None:
    """Acknowledged from the page cache; the same bytes go to all."""
    warm_up = 5.0 if context.quick else 12.0

    def rocketmq(version: str) -> RocketMQ:
        return RocketMQ(context.fresh(f"rocketmq-{version}"), "ASYNC_FLUSH", warm_up, version)

    makers: list[Callable[[], ClassicStore | RocketMQ]] = [
        lambda: ClassicStore(context.fresh("store-classic")),
        *[partial(rocketmq, version) for version in ROCKETMQ_VERSIONS],
    ]
    with context.running(makers) as peers:

        def case(name: str, title: str, metric: str, shape: LoadShape, what: str = "send") -> Case:
            contestants = [Contestant(peer.name, partial(getattr(peer, what), shape)) for peer in peers]
            return Case(f"classic.{name}", title, metric, contestants)

        context.run(
            [
                case("1", "Classic sends, 1 client", "p50_us", context.shape(1)),
                case("16", "Classic sends, 16 clients", "rate", context.shape(16)),
                case("64", "Classic sends, 64 clients", "rate", context.shape(64)),
                case("1x256", "Classic sends, 1 client, 256 in flight", "rate", context.shape(1, 256)),
                case("batch", f"Classic batches of {BATCH}, 1 client", "rate", context.shape(1, _IN_FLIGHT, BATCH)),
                case("pull.1", f"Classic pulls of {_PULLED}, 1 client", "rate", context.shape(1, 1, _PULLED), "pull"),
                case(
                    "pull.16", f"Classic pulls of {_PULLED}, 16 clients", "rate", context.shape(16, 1, _PULLED), "pull"
                ),
            ]
        )
