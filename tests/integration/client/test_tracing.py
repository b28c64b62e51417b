"""A message's way as one trace: from the span of its send to that of its handler, with OpenTelemetry's own SDK."""

import asyncio
import subprocess
import sys
import threading

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tandemmq.client import MessageContent, Outgoing, Producer, Refused, aio, worker
from tandemmq.client.tracing import Tracing
from tests.contract.store_process import StoreProcess


class Traced:
    """Spans that have ended, in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider)

    def spans(self, name: str) -> list[ReadableSpan]:
        return [one for one in self._exporter.get_finished_spans() if one.name == name]


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent(span: ReadableSpan) -> tuple[int, int]:
    assert span.parent is not None
    return span.parent.trace_id, span.parent.span_id


def test_a_handler_belongs_to_the_trace_of_the_send(store: StoreProcess) -> None:
    traced, stop, current = Traced(), threading.Event(), []

    def handle(message: MessageContent) -> None:
        current.append(trace.get_current_span().get_span_context().span_id)
        if message.body == b"last":
            stop.set()

    with Producer(store.address, linger=0.01, observers=[traced.tracing]) as producer:
        first = producer.send("traced", "first", order_key="k")
        producer.send_batch([Outgoing("traced", b"last", properties={"__SHARDINGKEY": "k"})])
    worker(handle, store.address, group="g", topic="traced", stop=stop, observers=[traced.tracing])
    sends, handlings = traced.spans("send traced"), traced.spans("process traced")
    assert {ids(one) for one in sends} == {parent(one) for one in handlings}
    assert sorted(current) == sorted(ids(one)[1] for one in handlings), "the span is the current one in the thread"
    assert sends[0].kind is trace.SpanKind.PRODUCER
    assert sends[0].attributes is not None
    assert sends[0].attributes["messaging.message.id"] == first.unique_key
    assert handlings[0].attributes is not None
    assert handlings[0].attributes["messaging.consumer.group.name"] == "g"


async def test_failures_are_seen(store: StoreProcess) -> None:
    traced, stop = Traced(), asyncio.Event()

    async def handle(message: MessageContent) -> None:
        if message.delivery_number == 1:
            raise KeyError("no such customer")
        stop.set()

    async with aio.Producer(store.address, observers=[traced.tracing]) as producer:
        with pytest.raises(Refused):
            await producer.send("no good name", "x")
        await producer.send("failing", "x")
    await aio.worker(
        handle,
        store.address,
        group="g",
        topic="failing",
        stop=stop,
        retry_after=lambda number: 0,
        observers=[traced.tracing],
    )
    (refused,) = traced.spans("send no good name")
    assert refused.status.status_code is trace.StatusCode.ERROR
    statuses = [one.status.status_code for one in traced.spans("process failing")]
    assert statuses == [trace.StatusCode.ERROR, trace.StatusCode.UNSET]


def test_who_does_not_trace_does_not_load_it() -> None:
    loaded = "import sys, tandemmq.client; print(any(name.startswith('opentelemetry') for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "False\n"
