"""Tracing: a client's work as OpenTelemetry spans. Needs the extra `tracing`, and a tracer provider of the program.

A message carries the context of its send in its properties (`traceparent`), so that the span of its handler belongs to
the same trace, whichever process that is in::

    tracing = Tracing()
    with Producer("127.0.0.1:8081", observers=[tracing]) as producer: ...
    worker(handle, "127.0.0.1:8081", group="billing", topic="orders", observers=[tracing])
"""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from tandemmq.client.message import MessageContent
from tandemmq.client.observing import ClientObserver, Ended
from tandemmq.client.outgoing import Sent

_SYSTEM = {"messaging.system": "rocketmq"}


class Tracing(ClientObserver):
    """A span for each send, and one for each run of a worker's handler."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """`provider`: whose tracer is used; the program's own without it."""
        self._tracer = trace.get_tracer("tandemmq.client", tracer_provider=provider)

    def sending(self, topic: str, properties: MutableMapping[str, str]) -> Ended:
        """See ClientObserver."""
        attributes = {
            **_SYSTEM,
            "messaging.operation.type": "send",
            "messaging.operation.name": "send",
            "messaging.destination.name": topic,
        }
        span = self._tracer.start_span(f"send {topic}", kind=SpanKind.PRODUCER, attributes=attributes)
        propagate.inject(properties, trace.set_span_in_context(span))

        def ended(sent: Sent | None, error: BaseException | None) -> None:
            if sent is not None:
                span.set_attribute("messaging.message.id", sent.unique_key)
                span.set_attribute("messaging.destination.partition.id", str(sent.queue_id))
            if error is not None:
                span.record_exception(error)
                span.set_status(Status(StatusCode.ERROR, str(error)))
            span.end()

        return ended

    @contextmanager
    def handling(self, group: str, message: MessageContent) -> Iterator[None]:
        """See ClientObserver. The span is the current one in the handler."""
        attributes = {
            **_SYSTEM,
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.name": message.topic,
            "messaging.consumer.group.name": group,
            "messaging.message.id": message.unique_key,
            "messaging.destination.partition.id": str(message.queue_id),
        }
        context = propagate.extract(message.properties)
        with self._tracer.start_as_current_span(
            f"process {message.topic}", context=context, kind=SpanKind.CONSUMER, attributes=attributes
        ):
            yield
