"""What a master owes one slave: the first-transfer rule, frames, acks, heartbeats, housekeeping, flow control."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.replicator.master.transfer import (
    Ahead,
    BelowMin,
    BeyondSent,
    Frame,
    LogCut,
    Negative,
    Silent,
    Transfer,
    TransferRefused,
    TransferRules,
)

MIB = 1 << 20


@dataclass
class Log:
    min_offset: int = 0
    max_offset: int = 3_646_758
    file_size: int = MIB


def begun(report: int, log: Log | None = None, rules: TransferRules | None = None, now: float = 0.0) -> Transfer:
    transfer = Transfer(rules or TransferRules(), now)
    assert transfer.report(report, log or Log(), now)
    return transfer


def frames(transfer: Transfer, log: Log, now: float = 0.0) -> list[Frame]:
    found = []
    while (frame := transfer.plan(log, now)) is not None:
        found.append(frame)
    return found


# -- where it begins ---------------------------------------------------------------------------------------------------


def test_nothing_is_sent_before_the_first_report() -> None:
    transfer = Transfer(TransferRules(), 0.0)
    assert transfer.plan(Log(), 1.0) is None
    assert transfer.plan(Log(), 6.0) is None


@pytest.mark.parametrize(
    ("report", "first"),
    [(0, 0), (1, 1), (2, 2), (1_048_575, 1_048_575), (1_048_576, 1_048_576), (3_646_757, 3_646_757)],
)
def test_the_first_report_says_where(report: int, first: int) -> None:
    frame = begun(report).plan(Log(), 0.0)
    assert frame is not None
    assert frame.offset == first


def test_with_sync_from_last_file_zero_means_the_last_file_as_in_java() -> None:
    rules = TransferRules(from_last_file=True)
    assert begun(0, rules=rules).next_offset == 3_145_728
    assert begun(0, Log(max_offset=3 * MIB), rules).next_offset == 3 * MIB
    assert begun(0, Log(max_offset=0), rules).next_offset == 0
    assert begun(1, rules=rules).next_offset == 1


@pytest.mark.parametrize("report", [0, 1])
def test_an_empty_slave_begins_where_the_log_does(report: int) -> None:
    assert begun(report, Log(min_offset=2 * MIB)).next_offset == 2 * MIB


@pytest.mark.parametrize(
    ("report", "error", "reason"),
    [
        (-1, Negative, "negative"),
        (-(1 << 63), Negative, "negative"),
        (3_646_759, Ahead, "ahead"),
        ((1 << 63) - 1, Ahead, "ahead"),
        (100, BelowMin, "below_min"),
        (2 * MIB - 1, BelowMin, "below_min"),
    ],
)
def test_first_reports_out_of_range_are_refused(report: int, error: type[TransferRefused], reason: str) -> None:
    transfer = Transfer(TransferRules(), 0.0)
    with pytest.raises(error) as caught:
        transfer.report(report, Log(min_offset=2 * MIB), 0.0)
    assert caught.value.reason == reason
    assert not transfer.begun


def test_a_slave_that_has_all_is_welcome() -> None:
    log = Log()
    transfer = begun(log.max_offset)
    assert frames(transfer, log) == []
    assert transfer.acked_offset == log.max_offset


def test_an_empty_slave_of_an_empty_master_waits() -> None:
    log = Log(max_offset=0)
    transfer = begun(1, log)
    assert frames(transfer, log) == []
    transfer.check(log, 1.0)
    log.max_offset = 203
    assert frames(transfer, log) == [Frame(1, 202)]
    assert transfer.acked_offset == 0


def test_the_first_report_of_a_slave_that_compares_is_no_ack() -> None:
    transfer = Transfer(TransferRules(), 0.0)
    transfer.report(2_000_000, Log(), 0.0, compares=True)
    assert (transfer.next_offset, transfer.acked_offset) == (2_000_000, 0)


@pytest.mark.parametrize("asked", [1, 2_000_000])
def test_nor_is_it_one_when_it_is_repeated_while_the_slave_compares(asked: int) -> None:
    """A slave whose log differs would count, and be listed, until it has found that out."""
    log, transfer = Log(), Transfer(TransferRules(), 0.0)
    transfer.report(asked, log, 0.0, compares=True)
    frames(transfer, log)
    assert not transfer.report(asked, log, 1.0, compares=True)
    assert transfer.acked_offset == 0
    assert transfer.heard_at == 1.0
    assert transfer.report(asked + 5, log, 2.0, compares=True)
    assert transfer.acked_offset == asked + 5


def test_a_slave_that_has_nothing_to_compare_acks_what_it_asked_for() -> None:
    log = Log(max_offset=MIB, min_offset=MIB)
    transfer = Transfer(TransferRules(), 0.0)
    transfer.report(MIB, log, 0.0, compares=True)
    assert transfer.report(MIB, log, 1.0, compares=True)


# -- frames ------------------------------------------------------------------------------------------------------------


def test_frames_end_where_files_do() -> None:
    log = Log(max_offset=MIB + 10)
    assert frames(begun(MIB - 1, log), log) == [Frame(MIB - 1, 1), Frame(MIB, 10)]


@given(st.integers(2, 5 * MIB), st.integers(1, 2 * MIB), st.integers(0, 5 * MIB), st.sampled_from((4_096, 65_536, MIB)))
def test_frames_are_contiguous_bounded_and_within_files(begin: int, batch: int, length: int, file_size: int) -> None:
    batch = max(batch, 2_000)
    log = Log(max_offset=begin + length, file_size=file_size)
    transfer = begun(begin, log, TransferRules(batch_size=batch))
    at = begin
    for frame in frames(transfer, log):
        assert frame.offset == at
        assert 0 < frame.size <= batch
        assert frame.offset // file_size == (frame.offset + frame.size - 1) // file_size
        at += frame.size
    assert at == log.max_offset == transfer.next_offset


def test_a_slave_whose_next_bytes_were_removed_is_let_go() -> None:
    log = Log()
    transfer = begun(MIB, log)
    with pytest.raises(BelowMin):
        transfer.plan(replace(log, min_offset=2 * MIB), 0.0)


def test_a_log_that_became_shorter_ends_the_connection() -> None:
    log = Log()
    transfer = begun(log.max_offset, log)
    with pytest.raises(LogCut):
        transfer.check(replace(log, max_offset=log.max_offset - 1), 0.0)
    with pytest.raises(LogCut):
        transfer.plan(replace(log, max_offset=log.max_offset - 1), 0.0)


# -- acks --------------------------------------------------------------------------------------------------------------


def test_acks_of_what_was_sent_are_news_once() -> None:
    log = Log()
    transfer = begun(3_600_000, log)
    frames(transfer, log)
    assert transfer.report(3_600_001, log, 1.0)
    assert not transfer.report(3_600_001, log, 1.0)
    assert not transfer.report(3_500_000, log, 1.0)
    assert transfer.acked_offset == 3_600_001
    assert transfer.report(log.max_offset, log, 1.0)


def test_acks_of_what_was_never_sent_are_refused() -> None:
    log = Log()
    transfer = begun(3_600_000, log)
    with pytest.raises(BeyondSent):
        transfer.report(3_600_001, log, 1.0)
    assert transfer.acked_offset == 3_600_000


def test_negative_acks_are_refused() -> None:
    transfer = begun(5)
    with pytest.raises(Negative):
        transfer.report(-1, Log(), 1.0)


@given(st.lists(st.integers(-5, 4 * MIB), max_size=30))
def test_whatever_is_reported_the_ack_is_bounded_and_never_falls(reports: list[int]) -> None:
    log, transfer, last = Log(), Transfer(TransferRules(batch_size=100_000), 0.0), 0
    for report in reports:
        try:
            transfer.report(report, log, 0.0)
        except TransferRefused:
            break
        assert last <= transfer.acked_offset <= transfer.next_offset <= log.max_offset
        last = transfer.acked_offset
        transfer.plan(log, 0.0)


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_silent_link_carries_heartbeats() -> None:
    log = Log(max_offset=406)
    transfer = begun(406, log)
    assert transfer.due(0.0) == 5.0
    assert transfer.plan(log, 5.0) is None
    assert transfer.plan(log, 5.01) == Frame(406, 0)
    assert transfer.plan(log, 5.01) is None
    assert transfer.due(5.01) == pytest.approx(10.01)


def test_a_first_report_that_comes_late_gets_a_heartbeat_and_then_data_as_in_java() -> None:
    log, transfer = Log(max_offset=406), Transfer(TransferRules(), 0.0)
    transfer.report(0, log, 5.1)
    assert transfer.plan(log, 5.1) == Frame(0, 0)
    assert transfer.plan(log, 5.1) == Frame(0, 406)


def test_data_puts_the_heartbeat_off() -> None:
    log = Log(max_offset=406)
    transfer = begun(0, log)
    transfer.plan(log, 3.0)
    assert transfer.plan(log, 6.0) is None
    transfer.wrote(7.0)
    assert transfer.plan(log, 11.0) is None
    assert transfer.plan(log, 12.1) == Frame(406, 0)


def test_a_sender_that_is_busy_is_not_woken_for_heartbeats() -> None:
    transfer = begun(0)
    assert transfer.due(100.0, busy=True) == 100.0
    assert transfer.due(1.0, busy=True) == 20.0


def test_silence_ends_the_connection() -> None:
    transfer = begun(5)
    transfer.check(Log(), 20.0)
    with pytest.raises(Silent):
        transfer.check(Log(), 20.001)


def test_any_byte_counts_as_life_but_only_after_the_first_report() -> None:
    transfer = Transfer(TransferRules(), 0.0)
    transfer.heard(15.0)
    with pytest.raises(Silent):
        transfer.check(Log(), 20.1)
    transfer = begun(5)
    transfer.heard(15.0)
    transfer.check(Log(), 35.0)


# -- flow control ------------------------------------------------------------------------------------------------------


def test_flow_control_sends_no_more_than_a_seconds_bytes_and_no_empty_frames() -> None:
    log, rules = Log(), TransferRules(bytes_per_second=100_000, batch_size=32_768)
    transfer = begun(2, log, rules)
    assert sum(frame.size for frame in frames(transfer, log, 0.0)) == 100_000
    assert transfer.plan(log, 0.9) is None
    assert transfer.due(0.9) == 1.0
    second = frames(transfer, log, 1.0)
    assert sum(frame.size for frame in second) == 100_000
    assert all(frame.size for frame in second)
