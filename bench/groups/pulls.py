"""Pulls of raw records in answers of 1 MiB, beside the most that grpcio can send."""

from bench.context import Context
from bench.model import Case, Contestant, Sample, Unavailable
from bench.peers.grpcio_limit import GrpcioLimit
from bench.store import Store, pull_request

_MESSAGES = 400_000
_IN_FLIGHT = 4


def pulls(context: Context) -> None:
    """Unary, and streamed."""
    messages = _MESSAGES // 4 if context.quick else _MESSAGES
    with (
        context.running([lambda: Store(context.fresh("store-pull"))]) as stores,
        context.running([lambda: GrpcioLimit(context.fresh("grpcio"), 1 << 20)]) as limits,
    ):
        if not stores or not limits:
            return
        store, limit = stores[0], limits[0]
        store.fill(messages)
        request = pull_request().SerializeToString()
        unary, stream = context.shape(1, _IN_FLIGHT), context.shape(1, 1)

        def per_gigabyte(sample: Sample) -> Sample:
            """A download counts bytes, not calls."""
            if not sample["rx_gb_s"]:
                raise Unavailable("nothing came")
            return {"gb_s": sample["rx_gb_s"], "cpu_s_gb": sample["cpu_s"] / sample["rx_gb_s"]}

        context.run(
            [
                Case(
                    "pull.unary", f"Pull, 1 MiB an answer, {_IN_FLIGHT} in flight", "gb_s",
                    [
                        Contestant(store.name, lambda: per_gigabyte(store.pull(unary))),
                        Contestant(limit.name, lambda: per_gigabyte(limit.call("Get", "unary", request, unary))),
                    ],
                ),
                Case(
                    "pull.stream", "PullStream, 1 MiB an answer", "gb_s",
                    [
                        Contestant(store.name, lambda: per_gigabyte(store.pull_stream(stream))),
                        Contestant(limit.name, lambda: per_gigabyte(limit.call("Stream", "download", request, stream))),
                    ],
                ),
            ]
        )  # fmt: skip
