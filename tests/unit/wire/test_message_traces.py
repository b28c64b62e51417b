"""Traces as clients of RocketMQ write them: bytes that were captured, older forms, and bytes that make no sense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.wire.message_traces import TraceEntry, TraceKind, Traces, decode_traces
from tests import captured_traces as captured


def test_a_send_of_each_version() -> None:
    assert decode_traces(captured.SENT_4_9_7) == Traces(
        [
            TraceEntry(
                TraceKind.SENT,
                captured.PLAIN_4_9_7,
                keys="key-plain",
                time_ms=1795546483687,
                group="group-t_producers",
                topic="topic-t",
                tags="A",
                store_host="127.0.0.1:12308",
                body_length=5,
                cost_ms=37,
                message_type="normal",
                offset_message_id="7F000001000030140000000000000000",
                success=True,
            )
        ],
        0,
    )
    (newer,) = decode_traces(captured.SENT_5_3_2).entries
    assert (newer.message_id, newer.cost_ms, newer.success) == (captured.PLAIN_5_3_2, 25, True)


def test_a_transaction() -> None:
    half, end = decode_traces(captured.DECIDING_4_9_7).entries
    assert (half.kind, half.message_type, half.message_id) == (TraceKind.SENT, "half", captured.DECIDED_4_9_7)
    assert end == TraceEntry(
        TraceKind.TRANSACTION,
        captured.DECIDED_4_9_7,
        keys="key-decided",
        time_ms=1795546483763,
        group="group-t_deciding",
        topic="topic-t",
        tags="B",
        store_host="127.0.0.1:12308",
        message_type="commit",
        transaction_id=captured.DECIDED_4_9_7,
        transaction_state="COMMIT_MESSAGE",
    )


@pytest.mark.parametrize(
    ("body", "message_id", "request_id", "time_ms"),
    [
        (
            captured.AGAIN_4_9_7,
            captured.PLAIN_4_9_7,
            "FD00000000000000000000000000000201D14E0E2F2A7A817461000C",
            1795546504290,
        ),
        (
            captured.AGAIN_5_3_2,
            captured.PLAIN_5_3_2,
            "FD00000000000000000000000000000204824E0E2F2A7A81E64B000C",
            1795546533451,
        ),
    ],
)
def test_a_consumption(body: bytes, message_id: str, request_id: str, time_ms: int) -> None:
    common = {"keys": "key-plain", "request_id": request_id, "time_ms": time_ms, "group": "group-t"}
    before = TraceEntry(TraceKind.GIVEN, message_id, retry_times=1, **common)  # type: ignore[arg-type]
    after = TraceEntry(TraceKind.CONSUMED, message_id, success=True, outcome="success", **common)  # type: ignore[arg-type]
    assert decode_traces(body) == Traces([before, after], 0)


def test_several_entries_in_one_body() -> None:
    entries = decode_traces(captured.CONSUMED_4_9_7).entries
    assert [(one.kind, one.outcome) for one in entries] == [
        (TraceKind.GIVEN, ""),
        (TraceKind.CONSUMED, "failed"),
        (TraceKind.GIVEN, ""),
        (TraceKind.CONSUMED, "success"),
    ]


def test_older_and_newer_forms() -> None:
    """Fewer fields in old releases; the client's host behind all others."""
    short = b"Pub\x011\x01r\x01g\x01t\x01id\x01null\x01null\x01h\x013\x014\x010\x01false\x02"
    hosted = b"Pub\x011\x01r\x01g\x01t\x01id\x01\x01\x01h\x013\x014\x014\x01off\x01true\x0110.0.0.1\x02"
    after = b"SubAfter\x01req\x01id\x0112\x01true\x01k\x02"
    one, two, three = decode_traces(short + hosted + after).entries
    assert (one.success, one.offset_message_id, one.tags, one.keys) == (False, "", "", "")
    assert (two.success, two.offset_message_id, two.client_host, two.message_type) == (
        True,
        "off",
        "10.0.0.1",
        "ordered",
    )
    assert (three.cost_ms, three.success, three.outcome, three.time_ms, three.group) == (12, True, "", 0, "")


@pytest.mark.parametrize(
    "damage",
    [
        captured.SENT_4_9_7[:60],
        captured.SENT_4_9_7.replace(b"\x0137\x01", b"\x01many\x01"),
        captured.SENT_4_9_7.replace(b"true", b"maybe"),
        b"Recall\x011\x01r\x02",
        b"\xff\xfe\x02",
        b"SubAfter\x02",
    ],
)
def test_what_makes_no_sense_is_counted_and_hides_nothing_else(damage: bytes) -> None:
    traces = decode_traces(damage.rstrip(b"\x02") + b"\x02" + captured.SENT_5_3_2)
    assert traces.unreadable == 1
    assert [one.message_id for one in traces.entries] == [captured.PLAIN_5_3_2]


@given(st.binary() | st.lists(st.sampled_from([b"Pub", b"SubAfter", b"\x01", b"\x02", b"1", b"true"])).map(b"".join))
def test_any_bytes_are_read(body: bytes) -> None:
    traces = decode_traces(body)
    assert len(traces.entries) + traces.unreadable == len([one for one in body.split(b"\x02") if one])


def test_nothing_is_nothing() -> None:
    assert decode_traces(b"") == Traces([], 0)
