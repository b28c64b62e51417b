"""PrometheusMetrics: what a client does, as Prometheus metrics of the program that uses it.

::

    metrics = PrometheusMetrics()
    with Producer("127.0.0.1:8081", observers=[metrics]) as producer: ...
    prometheus_client.start_http_server(9000)
"""

import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

from tandemmq.client.errors import RequestFailed
from tandemmq.client.message import MessageContent
from tandemmq.client.observing import ClientObserver, Ended
from tandemmq.client.outgoing import Sent

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class PrometheusMetrics(ClientObserver):
    """Counts and durations; one serves all producers, consumers and workers of a program."""

    def __init__(self, registry: CollectorRegistry = REGISTRY, clock: Callable[[], float] = time.perf_counter) -> None:
        """`registry`: where the metrics are; the process' own without it. One registry takes one of these."""
        self._clock = clock
        self._sends = Counter(
            "tandem_client_sends_total",
            "Sends by their end: a status, or the name of the error.",
            ["topic", "end"],
            registry=registry,
        )
        self._send_seconds = Histogram(
            "tandem_client_send_seconds",
            "From the call to the receipt, repetitions included.",
            ["topic"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._received = Counter(
            "tandem_client_received_messages_total",
            "Messages that came, each delivery.",
            ["group", "topic"],
            registry=registry,
        )
        self._settled = Counter(
            "tandem_client_settled_messages_total",
            "Messages by what was said of them: acknowledged, retried, dead.",
            ["group", "topic", "end"],
            registry=registry,
        )
        self._handler_seconds = Histogram(
            "tandem_client_handler_seconds",
            "What the handler of a worker takes, also where it raises.",
            ["group", "topic"],
            buckets=_SECONDS,
            registry=registry,
        )

    def sending(self, topic: str, properties: MutableMapping[str, str]) -> Ended:
        """See ClientObserver; so the others."""
        begun = self._clock()

        def ended(sent: Sent | None, error: BaseException | None) -> None:
            end = sent.status if sent is not None else _name(error)
            self._sends.labels(topic, end).inc()
            self._send_seconds.labels(topic).observe(self._clock() - begun)

        return ended

    def received(self, group: str, topic: str, number: int) -> None:
        """So many messages have come."""
        self._received.labels(group, topic).inc(number)

    def settled(self, group: str, topic: str, ending: str) -> None:
        """One has ended."""
        self._settled.labels(group, topic, ending).inc()

    @contextmanager
    def handling(self, group: str, message: MessageContent) -> Iterator[None]:
        """Around a handler."""
        begun = self._clock()
        try:
            yield
        finally:
            self._handler_seconds.labels(group, message.topic).observe(self._clock() - begun)


def _name(error: BaseException | None) -> str:
    if isinstance(error, RequestFailed) and error.sent:
        return error.sent[0].status
    return type(error).__name__
