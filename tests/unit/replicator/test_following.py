"""What a slave asks for, accepts and reports, byte by byte."""

import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemmq.replicator.frames import MAX_BODY_SIZE, Body, encode_header
from tandemmq.replicator.slave.following import FollowingConnection, FollowRules
from tandemmq.replicator.slave.slave_errors import (
    BadStream,
    FollowError,
    LogsDiffer,
    MasterBeginsLater,
    MasterEndsEarlier,
    MasterHasNothing,
    MasterSilent,
    NotAMaster,
    OlderMaster,
    OtherFileSize,
    SlaveRefusal,
    WrongOffset,
)
from tests.unit.replicator.following_kit import FILE_SIZE, MemorySlave, cut, frame, frames, local_log, master_log

LOG = b"\0" + random.Random(1).randbytes(3 * FILE_SIZE + 12345)


# -- the first report -------------------------------------------------------------------------------------------------


def test_an_empty_log_asks_for_the_whole_history() -> None:
    assert MemorySlave().reports == [1]


def test_an_empty_log_asks_for_the_last_file_when_told_so() -> None:
    assert MemorySlave(rules=FollowRules(from_last_file=True)).reports == [0]


@pytest.mark.parametrize(
    ("minimum", "maximum", "asked"),
    [
        (0, 200_000, 200_000 - 65_536),
        (0, 1000, 1),  # never 0: that would mean the last file
        (0, 1, 1),
        (FILE_SIZE, FILE_SIZE + 100, FILE_SIZE),
        (FILE_SIZE, FILE_SIZE, FILE_SIZE),
    ],
)
def test_a_log_asks_for_an_overlap(minimum: int, maximum: int, asked: int) -> None:
    log = local_log(maximum, min_offset=minimum)
    assert log.overlap_begin() == asked
    assert FollowingConnection(log, bytes(maximum - asked)).first_report(0) == asked


def test_within_one_file_the_overlap_begins_with_the_file() -> None:
    assert local_log(FILE_SIZE + 100).overlap_begin(one_file=True) == FILE_SIZE
    assert local_log(FILE_SIZE + 100_000).overlap_begin(one_file=True) == FILE_SIZE + 100_000 - 65_536
    assert local_log(FILE_SIZE).overlap_begin(one_file=True) == FILE_SIZE - 65_536


def test_the_overlap_never_begins_before_the_masters_log() -> None:
    end = FILE_SIZE + 100
    slave = MemorySlave(LOG[:end], master=master_log(len(LOG), min_offset=FILE_SIZE))
    assert slave.reports == [FILE_SIZE]
    slave.take_all(frames(LOG, FILE_SIZE, 1000))
    assert slave.log == LOG


# -- what arrives -----------------------------------------------------------------------------------------------------


def test_byte_0_is_added_when_the_master_begins_behind_it() -> None:
    following = FollowingConnection(local_log())
    assert following.first_report(0) == 1
    assert following.received(encode_header(1, 0), 0, 0) == []
    assert following.report(0) is None
    assert following.received(frame(1, b"abc"), 500, 0) == [Body(0, -1, 1), Body(1, 512, 3)]
    following.stored(4, 0)
    assert following.report(0) == 4
    assert following.received(frame(4, b"d"), 0, 0) == [Body(4, 12, 1)]


@pytest.mark.parametrize("begin", [0, FILE_SIZE, 3 << 30])
def test_an_empty_log_begins_with_whatever_file_the_master_begins_with(begin: int) -> None:
    following = FollowingConnection(local_log())
    following.first_report(0)
    assert following.received(frame(begin, b"abc"), 0, 0) == [Body(begin, 12, 3)]
    following.stored(begin + 3, 0)
    assert following.report(0) == begin + 3


def test_a_heartbeat_says_where_an_empty_log_begins() -> None:
    """Vector 6 of the spec: an empty slave that gets a heartbeat at k files reports just that."""
    following = FollowingConnection(local_log(), rules=FollowRules(from_last_file=True))
    assert following.first_report(0) == 0
    following.received(encode_header(2 * FILE_SIZE, 0), 0, 0)
    assert following.report(0) == 2 * FILE_SIZE
    assert following.report(0) is None
    with pytest.raises(WrongOffset):
        following.received(encode_header(3 * FILE_SIZE, 0), 0, 0)


def test_an_empty_master_may_heartbeat_at_0_and_then_begin_at_1() -> None:
    slave = MemorySlave()
    slave.take_all([encode_header(0, 0), encode_header(1, 0), encode_header(0, 0), *frames(LOG[:5000], 1, 100)])
    assert slave.log == LOG[:5000]
    assert slave.reports[-1] == 5000


def test_an_empty_log_cannot_begin_inside_a_file() -> None:
    with pytest.raises(WrongOffset, match="first frame is at offset 1000: our log is empty"):
        MemorySlave().take(frame(1000, b"x" * 203))
    with pytest.raises(WrongOffset):
        MemorySlave(rules=FollowRules(from_last_file=True)).take(frame(1, b"x"))


def test_an_equal_overlap_is_not_appended_again() -> None:
    slave = MemorySlave(LOG[:200_000])
    slave.take_all(frames(LOG, 200_000 - 65_536, 32_768))
    assert slave.log == LOG
    assert slave.reports[:2] == [200_000 - 65_536, 200_000]
    assert slave.reports[-1] == len(LOG)


def test_nothing_is_reported_while_the_overlap_is_not_complete() -> None:
    slave = MemorySlave(LOG[:1000])
    slave.take(frame(1, LOG[1:999]))
    assert slave.reports == [1]
    slave.take(frame(999, LOG[999:1000]))
    assert slave.reports == [1, 1000]


@pytest.mark.parametrize("at", [1, 2, 500, 999])
def test_a_fork_is_found_before_anything_is_appended(at: int) -> None:
    other = bytearray(LOG[:2000])
    other[at] ^= 1
    slave = MemorySlave(LOG[:1000])
    with pytest.raises(LogsDiffer, match=rf"(offset|before) {at}.*; our log ends at 1000") as caught:
        slave.take(frame(1, bytes(other[1:])))
    assert "When the logs differ" in caught.value.explain()
    assert slave.log == LOG[:1000]
    assert slave.following.comparing, "what differs is not taken for found equal, though the frame reaches beyond it"


def test_two_frames_in_one_read_are_one_turn_and_one_report() -> None:
    """Vector 8; Java acks twice, which says nothing more."""
    slave = MemorySlave(LOG[:1], compare=0)
    slave.take(frame(1, LOG[1:10]) + frame(10, LOG[10:30]))
    assert slave.reports == [1, 30]


def test_a_header_in_two_halves_and_a_late_body_are_one_report() -> None:
    """Vector 9."""
    slave = MemorySlave(LOG[:1], compare=0)
    whole = frame(1, LOG[1:407])
    slave.take_all([whole[:6], whole[6:12], whole[12:]])
    assert slave.reports == [1, 407]


@pytest.mark.parametrize("offset", [594, 1001, 999, 0])
def test_a_frame_elsewhere_is_refused_even_an_empty_one(offset: int) -> None:
    """Vector 7, heartbeats included."""
    for body in (b"", b"x"):
        slave = MemorySlave(LOG[:1000], compare=0)
        with pytest.raises(WrongOffset, match=rf"a frame at offset {offset}, expected was 1000"):
            slave.take(frame(offset, body))
        assert slave.log == LOG[:1000]


def test_an_oversized_frame_is_refused_at_its_header() -> None:
    """Vector 10: a Java slave would spin for ever."""
    with pytest.raises(BadStream, match="5242880 bytes at offset 1000"):
        MemorySlave(LOG[:1000], compare=0).take(encode_header(1000, 5 << 20))


@pytest.mark.parametrize("header", [encode_header(1000, -1), encode_header(-5, 10), b"HTTP/1.1 400"])
def test_what_no_frame_can_be_is_refused(header: bytes) -> None:
    with pytest.raises(BadStream):
        MemorySlave(LOG[:1000], compare=0).take(header)


def test_the_largest_frame_is_taken() -> None:
    body = bytes(MAX_BODY_SIZE)
    slave = MemorySlave(b"\0", compare=0, file_size=1 << 30)
    slave.take(frame(1, body))
    assert len(slave.log) == 1 + MAX_BODY_SIZE


@pytest.mark.parametrize("cut_at", [12, 40, 112, 150, None])
def test_a_frame_across_two_files_shows_another_file_size(cut_at: int | None) -> None:
    slave = MemorySlave(LOG[: FILE_SIZE - 100], compare=0)
    with pytest.raises(OtherFileSize):
        slave.take(frame(FILE_SIZE - 100, LOG[FILE_SIZE - 100 : FILE_SIZE + 1000])[:cut_at])
    assert slave.log == LOG[: FILE_SIZE - 100]


def test_a_flood_of_empty_frames_is_nothing() -> None:
    slave = MemorySlave(LOG[:1000], compare=0)
    slave.take(encode_header(1000, 0) * 50_000 + encode_header(1000, 0)[:5])
    slave.take(encode_header(1000, 0)[5:] + frame(1000, LOG[1000:1010]))
    assert slave.reports == [1000, 1010]
    assert slave.following.frames == 50_002


# -- what the master says of itself -----------------------------------------------------------------------------------


def refusal(local_end: int = 1000, **of_master: int) -> type[FollowError] | None:
    values = {"max_offset": 5000, "min_offset": 0, "file_size": FILE_SIZE, "epoch": 3} | of_master
    try:
        FollowingConnection(local_log(local_end, epoch=3), b"", master_log(5000)._replace(**values))  # type: ignore[arg-type]
    except FollowError as error:
        return type(error)
    return None


def test_what_the_master_says_can_be_reason_enough() -> None:
    assert refusal() is None
    assert refusal(epoch=4) is None
    assert refusal(epoch=2) is OlderMaster
    assert refusal(file_size=1 << 30) is OtherFileSize
    assert refusal(min_offset=FILE_SIZE, max_offset=2 * FILE_SIZE) is MasterBeginsLater
    assert refusal(max_offset=999) is MasterEndsEarlier
    assert refusal(max_offset=1000) is None
    assert refusal(is_slave=1) is NotAMaster
    assert refusal(fenced_by_epoch=4) is NotAMaster
    assert refusal(0, min_offset=FILE_SIZE, max_offset=2 * FILE_SIZE) is None


def test_every_refusal_says_what_to_do() -> None:
    kinds = set(SlaveRefusal.__subclasses__())
    assert all(kind.remedy for kind in kinds)
    assert len({kind.reason for kind in kinds}) == len(kinds)


# -- time -------------------------------------------------------------------------------------------------------------


def test_the_last_report_is_repeated() -> None:
    following = FollowingConnection(local_log(1000), b"")
    following.first_report(10.0)
    assert following.tick(14.9) is None
    assert following.tick(15.0) == 1000
    assert following.tick(15.1) is None
    following.received(frame(1000, b"x"), 0, 16.0)
    following.stored(1001, 0)
    assert following.report(16.0) == 1001
    assert following.tick(20.9) is None
    assert following.tick(21.0) == 1001


def test_a_silent_master_is_left() -> None:
    following = FollowingConnection(local_log(1000), b"")
    following.first_report(10.0)
    following.received(encode_header(1000, 0), 0, 20.0)
    following.tick(40.0)
    following.tick(40.1)
    with pytest.raises(MasterSilent, match="20 seconds"):
        following.tick(41.1)


def test_who_has_slept_listens_before_it_calls_its_master_silent() -> None:
    following = FollowingConnection(local_log(1000), b"")
    following.first_report(10.0)
    assert following.tick(500.0) == 1000
    following.received(encode_header(1000, 0), 0, 500.1)
    assert following.tick(501.0) is None
    assert following.tick(520.2) == 1000
    following.received(encode_header(1000, 0), 0, 520.3)
    assert following.tick(521.0) is None


def test_who_does_not_listen_hears_no_silence() -> None:
    following = FollowingConnection(local_log(1000), b"")
    following.first_report(10.0)
    assert following.tick(100.0, paused=True) == 1000
    assert following.tick(119.0) == 1000


def test_a_master_that_ends_within_our_overlap_has_lost_its_end() -> None:
    slave = MemorySlave(LOG[:1000])
    slave.take(frame(1, LOG[1:800]))
    slave.take(encode_header(800, 0))
    slave.now += 1.0
    slave.take(encode_header(800, 0) * 3)  # RocketMQ 5 does that for up to a second while it must not send more
    slave.now += 4.0
    with pytest.raises(MasterEndsEarlier, match="ends at offset 800, ours at 1000"):
        slave.take(encode_header(800, 0))


def test_a_master_that_has_nothing_where_we_ask() -> None:
    slave = MemorySlave(LOG[:1000])
    slave.take(encode_header(1, 0))
    slave.now += 5.0
    with pytest.raises(MasterHasNothing, match="nothing from offset 1 on"):
        slave.take(encode_header(1, 0))


def test_flushed_reports_wait_for_the_disk() -> None:
    following = FollowingConnection(local_log(1000), b"", rules=FollowRules(ack_flushed=True))
    following.first_report(0)
    following.received(frame(1000, b"abc"), 0, 0)
    following.stored(1003, 1000)
    assert following.report(0) is None
    following.flushed(1002)
    assert following.report(0) == 1002
    following.flushed(9999)  # of bytes that this master may not have
    assert following.report(0) == 1003


def test_no_report_names_more_than_what_this_master_sent() -> None:
    following = FollowingConnection(local_log(1000), b"")
    following.first_report(0)
    following.stored(5000, 5000)
    assert following.report(0) is None


# -- any cut is the same ----------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    have=st.integers(0, 4000),
    size=st.integers(1, 700),
    compare=st.integers(0, 3000),
    cuts=st.sets(st.integers(1, 6000)),
)
def test_any_chunking_gives_the_same_log(have: int, size: int, compare: int, cuts: set[int]) -> None:
    log, file_size = LOG[:5000], 1024
    slave = MemorySlave(log[:have], compare=compare, file_size=file_size)
    begin = slave.reports[0]
    beats = [encode_header(begin, 0)] * 2
    stream = b"".join([*beats, *frames(log, begin, size, file_size), encode_header(len(log), 0)])
    slave.take_all(cut(stream, cuts))
    assert slave.log == log
    assert slave.reports[-1] == len(log)
    assert slave.reports == sorted(set(slave.reports))


@pytest.mark.slow
@settings(deadline=None)
@given(have=st.integers(1, 3000), at=st.integers(0, 4999), size=st.integers(1, 700), cuts=st.sets(st.integers(1, 6000)))
def test_any_chunking_finds_the_fork(have: int, at: int, size: int, cuts: set[int]) -> None:
    """A differing byte in the overlap: refused, nothing appended. Elsewhere it cannot be seen."""
    log, theirs = LOG[:5000], bytearray(LOG[:5000])
    theirs[at] ^= 0x55
    slave = MemorySlave(log[:have], file_size=1 << 20)
    stream = b"".join(frames(bytes(theirs), slave.reports[0], size))
    if slave.reports[0] <= at < have:
        with pytest.raises(LogsDiffer):
            slave.take_all(cut(stream, cuts))
        assert slave.log == log[:have]
    else:
        slave.take_all(cut(stream, cuts))
        assert slave.log == log[:have] + theirs[have:]


@settings(deadline=None)
@given(data=st.binary(max_size=200), cuts=st.sets(st.integers(1, 200)))
def test_garbage_never_gets_into_the_log(data: bytes, cuts: set[int]) -> None:
    slave = MemorySlave(LOG[:1000])
    with contextlib.suppress(FollowError):
        slave.take_all(cut(data, cuts))
    assert slave.log == LOG[:1000]
