"""The lane in front of a connection, and the connection alone: the same bytes and events, the same of everything."""

import asyncio
import socket
from contextlib import closing
from itertools import pairwise, product
from typing import NoReturn

import pytest
from hypothesis import strategies as st

from tandemmq.common.grpc_transport import DirectCall, Limits
from tandemmq.common.grpc_transport.aio.protocol import Protocol
from tandemmq.store.compiled_core import core_problem
from tests.campaigns import examples
from tests.faults.transport_mutations import Mutator
from tests.seed import SEED
from tests.unit.grpc_transport.lane_kit import Event, NoSocket, One, compare, run, run_by_hand
from tests.unit.grpc_transport.wire import (
    PROBE,
    Indexing,
    Literal,
    Setting,
    call,
    data,
    headers,
    hello,
    indexed,
    literals,
    message,
    ping,
    priority_field,
    request_fields,
    rst_stream,
    settings,
    window_update,
)

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

HEAD = literals(request_fields())
GREETING = hello() + settings(ack=True)
SMALL = Limits(
    max_concurrent_streams=3,
    stream_window=65_535,
    connection_window=65_535,
    max_buffered=2000,
    max_pending=1500,
    max_receive_message_length=1000,
    max_send_message_length=1004,
    overhead_per_second=30,
    resets_burst=6,
    drain_seconds=3,
)

BODIES = st.one_of(
    st.sampled_from([b"broken", b"later", b"large", b"odd", b"none", b"others", b""]),
    st.builds(lambda size: b"x" * size, st.sampled_from([1, 30, 994, 999, 1000, 1001, 16_000, 40_000])),
)
VARIED = st.one_of(
    st.sampled_from([b"1S", b"100m", b"99999999H", b"0n", b"1", b"S", b"123456789S", b"5x"]).map(
        lambda text: Literal(b"grpc-timeout", text)
    ),
    st.builds(
        lambda value, code, indexing: Literal(b"x-mq-request-id", value, indexing, code, code),
        st.binary(max_size=12).map(lambda raw: raw.hex().encode()),
        st.booleans(),
        st.sampled_from(Indexing),
    ),
    st.sampled_from(
        [
            Literal(b"grpc-encoding", b"gzip"), Literal(b"grpc-encoding", b"snappy"), Literal(b"te", b"deflate"),
            Literal(b"content-length", b"12"), Literal(b"x-bin", b"A"), Literal(b"connection", b"close"),
            Literal(b"Capital", b"1"), Literal(b"x-space", b"1 "), Literal(b":path", b"/twice"),
            Literal(b"x", b"y" * 700),
            Literal(b"", b"text/plain", index=31), Literal(b"", b"tester/1", index=58),
        ]
    ),
)  # fmt: skip
BLOCKS = st.builds(
    lambda method, varied: literals(request_fields(method)) + b"".join(field.encode() for field in varied),
    st.sampled_from(["Echo", "Echo", "Echo", "Wait", "Repeat", "Nowhere"]),
    st.lists(VARIED, max_size=2),
)


def pieces(whole: bytes, count: int) -> list[bytes]:
    """A message with its prefix, in so many parts; the first has the prefix."""
    size = max(5, len(whole) // count)
    return [whole[at * size : (at + 1) * size if at < count - 1 else None] for at in range(count)]


def in_pieces(stream: int, body: bytes, count: int) -> bytes:
    """The DATA frames of a request whose message does not come in one."""
    *first, last = pieces(message(body), count)
    return b"".join(data(stream, piece) for piece in first) + data(stream, last, end=True)


class Talk:
    """What a client says, stream ids counted up; a call is told by the number of its stream from the last one."""

    def __init__(self) -> None:
        self.last = -1
        self.left: list[bytes] = []
        """What ends the requests of calls that have begun."""

    def rest(self, how: str) -> bytes:
        """The ends of all requests that have begun, of the first, or of the last."""
        if not self.left:
            return b""
        if how == "all":
            ends, self.left = self.left, []
            return b"".join(ends)
        return self.left.pop(0 if how == "first" else -1)

    def call(self, block: bytes, body: bytes, skip: int, how: str) -> bytes:
        self.last += skip
        stream = max(self.last, 0)
        if how.startswith("begun"):
            self.left.append(data(stream, message(body), end=True))
            update = window_update(stream, 20_000 if how == "begun, updated" else (1 << 31) - 1)
            return headers(stream, block) + (update if how != "begun" else b"")
        if how == "padded":
            return headers(stream, block, padding=3) + data(stream, message(body), end=True)
        if how == "priority":
            return headers(stream, block, priority=priority_field(0)) + data(stream, message(body), end=True)
        if how == "apart":
            return headers(stream, block) + data(stream, message(body)) + data(stream, end=True)
        if how == "halves":
            whole = message(body)
            return headers(stream, block) + data(stream, whole[:3]) + data(stream, whole[3:], end=True)
        if how.startswith("in pieces"):
            return headers(stream, block) + self.pieces(stream, body, how)
        if how == "pinged":
            return headers(stream, block) + ping() + data(stream, message(body), end=True)
        if how.startswith("update"):
            increment = (1 << 31) - 1 if how == "updated far" else 20_000 if how == "updated" else 0
            update = window_update(stream, increment)
            return headers(stream, block) + update + data(stream, message(body), end=True)
        if how == "another's":
            return headers(stream, block) + window_update(max(stream - 2, 0), 5) + data(stream, message(body), end=True)
        if how == "zipped":
            return headers(stream, block) + data(stream, message(body, flag=1), end=True)
        if how == "lying":
            return headers(stream, block) + data(stream, message(body, length=7), end=True)
        if how == "more":
            return headers(stream, block, more=True) + data(stream, message(body), end=True)
        return headers(stream, block) + data(stream, message(body), end=True)

    def pieces(self, stream: int, body: bytes, how: str) -> bytes:
        first, second, third = pieces(message(body), 3)
        if how == "in pieces, later":
            self.left.append(data(stream, second) + data(stream, third, end=True))
            return data(stream, first)
        if how == "in pieces, odd":  # padded, with an empty frame, and ended by trailers
            odd = data(stream, first) + data(stream, second, padding=2) + data(stream) + data(stream, third)
            return odd + headers(stream, literals([(b"x", b"y")]), end=True)
        return in_pieces(stream, body, 3)


CALLS = st.tuples(
    st.one_of(st.just(HEAD), st.just(HEAD), BLOCKS),
    BODIES,
    st.sampled_from([2, 2, 2, 2, 2, 2, 2, 2, 4, 1, 0]),
    st.sampled_from(
        [""] * 6
        + ["updated"] * 6
        + ["begun"] * 6
        + ["begun, updated"] * 2
        + ["in pieces", "in pieces, later"] * 3
        + ["in pieces, odd"]
        + ["updated far", "begun, updated far", "update of 0", "another's"]
        + ["padded", "priority", "apart", "halves", "pinged", "zipped", "lying", "more"]
    ),
)
FRAMES = st.one_of(
    st.builds(window_update, st.sampled_from([0, 0, 1, 3]), st.sampled_from([0, 1000, 1 << 20, (1 << 31) - 1])),
    st.builds(rst_stream, st.sampled_from([1, 3, 5])),
    st.builds(ping, st.just(b"draining"), ack=st.booleans()),
    st.builds(
        settings,
        st.lists(
            st.sampled_from(
                [(Setting.INITIAL_WINDOW_SIZE, size) for size in (10, 1 << 20)] + [(Setting.HEADER_TABLE_SIZE, 0)]
            ),
            max_size=1,
        ),
    ),
)  # fmt: skip
HAPPENINGS = st.sampled_from(
    [
        None, One.tick, lambda one: one.short.answer_one(), lambda one: one.congest(True),
        lambda one: one.congest(False), lambda one: one.tighten(True), lambda one: one.tighten(False),
        lambda one: one.protocol.drain(), One.break_socket,
    ]
)  # fmt: skip
RESTS = st.sampled_from(["all", "all", "first", "first", "last"])
SAID = st.lists(
    st.one_of(
        st.tuples(st.just("call"), CALLS),
        st.tuples(st.just("call"), CALLS),
        st.tuples(st.just("rest"), RESTS),
        st.tuples(st.just("frame"), FRAMES),
    ),
    max_size=12,
)


def is_behind(one: One) -> bool:
    return one.connection.reader.behind


def spoken(said: list[tuple[str, object]], acknowledged: bool) -> bytes:
    talk = Talk()
    parts = [GREETING if acknowledged else hello()]
    for kind, what in said:
        parts.append(talk.call(*what) if kind == "call" else talk.rest(what) if kind == "rest" else what)  # type: ignore[misc, arg-type]
    return b"".join(parts)


def mixed(sent: bytes, happenings: list[tuple[int, Event]]) -> list[Event]:
    """The bytes cut where something happens, and what does."""
    cuts = sorted((place % (len(sent) + 1), at) for at, (place, _) in enumerate(happenings))
    places = [0, *(place for place, _ in cuts), len(sent)]
    parts = [sent[start:stop] for start, stop in pairwise(places)]
    events: list[Event] = [parts[0]]
    for (_, at), part in zip(cuts, parts[1:], strict=True):
        events += [happenings[at][1], part]
    return [event for event in events if event != b""]


@examples(
    150,
    2000,
    SAID,
    st.lists(st.tuples(st.integers(0, 1 << 20), HAPPENINGS), max_size=8),
    st.sampled_from([True, True, True, True, False]),
    st.sampled_from([Limits(), SMALL, Limits(max_header_list_size=600)]),
)
def test_nobody_can_tell(
    said: list[tuple[str, object]], happenings: list[tuple[int, Event]], acknowledged: bool, limits: Limits
) -> None:
    compare(mixed(spoken(said, acknowledged), happenings), limits)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(), SMALL], ids=["usual", "small"])
def test_damaged_traffic(limits: Limits) -> None:
    """Inputs of the transport's fuzzer: damaged ones are refused in the same words."""
    mutator, taken = Mutator(SEED), 0
    for number in range(0, 600, 2):
        taken += compare(mutator.make(number), limits)
    assert taken > 50


def test_plain_calls_are_taken() -> None:
    varied = [HEAD + Literal(b"grpc-timeout", b"%dm" % at, huffman_value=True).encode() for at in range(50)]
    calls = [headers(1 + 2 * at, block) + data(1 + 2 * at, message(b"m"), end=True) for at, block in enumerate(varied)]
    assert compare([GREETING, b"".join(calls)], Limits()) == 50
    assert compare([GREETING, *calls], Limits()) == 50
    assert compare([GREETING + calls[0] + ping() + calls[1] + window_update(0, 9) + calls[2]], Limits()) == 3


def test_a_window_update_may_stand_in_a_call() -> None:
    """As grpcio sends them; but not more of them than a second may have, besides two for each answer."""
    calls = [
        headers(1 + 2 * at, HEAD) + window_update(1 + 2 * at, 5) + data(1 + 2 * at, message(b"m"), end=True)
        for at in range(40)
    ]
    assert compare([GREETING, *calls], Limits()) == 40
    assert compare([GREETING, *calls], SMALL) == 40
    held = [
        headers(1 + 2 * at, HEAD) + window_update(1 + 2 * at, 5) + data(1 + 2 * at, message(b"later"), end=True)
        for at in range(40)
    ]
    assert compare([GREETING, *held], Limits(overhead_per_second=30)) == 30
    large = calls[0].replace(message(b"m"), message(b"large"), 1).replace(b"\0\0\x06\0\1", b"\0\0\x0a\0\1", 1)
    assert compare([hello([(Setting.INITIAL_WINDOW_SIZE, 100)]) + settings(ack=True) + large], Limits()) == 1


def begun_together(count: int, first: int = 1, body: bytes = b"m", update: int = 0) -> bytes:
    """Calls as clients with many in flight send them: all header blocks, then all messages."""
    streams = range(first, first + 2 * count, 2)
    heads = [headers(at, HEAD) + (window_update(at, update) if update else b"") for at in streams]
    return b"".join(heads) + b"".join(data(at, message(body), end=True) for at in streams)


def test_calls_that_begin_together_are_taken() -> None:
    assert compare([GREETING, begun_together(256)], Limits()) == 256
    assert compare([GREETING, begun_together(40, update=5)], Limits()) == 40
    assert compare([GREETING, begun_together(3), begun_together(3, first=7)], SMALL) == 6
    assert compare([GREETING, begun_together(4)], SMALL) == 0, "more than may be open at a time"
    assert compare([GREETING, b"".join(call(at, b"m") for at in range(1, 801, 2))], Limits()) == 400
    assert compare([GREETING, begun_together(257)], Limits()) == 0, "more than are remembered"


def test_what_does_not_come_whole_is_pythons_in_the_order_in_which_it_came() -> None:
    sent = begun_together(10)
    cut = len(sent) - len(data(19, message(b"m"), end=True)) * 4 - 1
    assert compare([GREETING, sent[:cut], sent[cut:]], Limits()) == 6
    assert compare([GREETING, begun_together(5, body=b"none"), One.tick], Limits()) == 1
    late = headers(1, HEAD) + headers(3, HEAD) + data(3, message(b"m"), end=True) + data(1, message(b"m"), end=True)
    assert compare([GREETING, late], Limits()) == 0
    reset = headers(1, HEAD) + headers(3, HEAD) + rst_stream(1) + data(3, message(b"m"), end=True)
    assert compare([GREETING, reset], Limits()) == 0


LONG = b"x" * 900


def test_requests_in_pieces_are_taken() -> None:
    """Also those whose frames the reads cut, and those of several calls whose frames come by turns."""
    calls = [headers(at, HEAD) + in_pieces(at, LONG, 5) for at in range(1, 41, 2)]
    whole = GREETING + b"".join(calls)
    assert compare([GREETING, *calls], Limits()) == 20
    assert compare([whole], Limits()) == 20
    assert compare([whole[at : at + 333] for at in range(0, len(whole), 333)], Limits()) > 10
    by_turns = [pieces(message(LONG), 5) for _ in range(8)]
    said = [headers(1 + 2 * at, HEAD) + data(1 + 2 * at, parts[0]) for at, parts in enumerate(by_turns)]
    for turn in range(1, 5):
        said += [data(1 + 2 * at, parts[turn], end=turn == 4) for at, parts in enumerate(by_turns)]
    assert compare([GREETING, b"".join(said)], Limits()) == 8
    assert compare([GREETING, *said], Limits()) == 8
    large = headers(1, HEAD) + data(1, message(b"x" * 70_000), end=True)  # as grpcio sends it, cut by a read
    assert compare([GREETING, large[:30_000], large[30_000:]], Limits()) == 1


def test_a_request_in_pieces_reads_what_it_is() -> None:
    async def go() -> None:
        one = One(Limits(), lane=True)
        one.protocol.data_received(GREETING)
        body = bytes(range(256)) * 200
        one.protocol.data_received(headers(1, HEAD) + in_pieces(1, body, 7))
        assert one.short.asked == [(body, one.protocol.peer)]
        one.protocol.connection_lost(None)

    run_by_hand(go())


BEGUN_IN_PIECES = headers(1, HEAD + Literal(b"grpc-timeout", b"1500m").encode()) + b"".join(
    data(1, piece) for piece in pieces(message(LONG), 3)[:2]
)


@pytest.mark.parametrize(
    "events",
    [
        [One.tick, One.tick, None, data(1, b"more")],
        [One.tick, data(1, pieces(message(LONG), 3)[2], end=True)],
        [rst_stream(1), data(1, b"more"), headers(3, HEAD)],
        [headers(1, HEAD, end=True), None],
        [headers(1, literals([(b"x", b"y")]), end=True), None],
        [data(1, b"x", end=True), None],
        [data(1, b"x" * 900, end=True), None],
        [data(1, b"x" * 900), data(1, end=True), None],
        [data(1, pieces(message(LONG), 3)[2]), data(1, end=True), None],
        [data(1, padding=3), data(1, pieces(message(LONG), 3)[2], end=True, padding=9), None],
        [data(1), window_update(1, 5), window_update(1, 0), None],
        [lambda one: one.tighten(True), data(1, b"x"), lambda one: one.tighten(False), data(1, b"y"), None],
        [lambda one: one.congest(True), data(1, pieces(message(LONG), 3)[2], end=True), None],
        [data(1, b"x" * 20)[:15], One.tick, data(1, b"x" * 20)[15:], rst_stream(1), data(1, b"more")],
        [data(1, b"x" * 20)[:15], One.tick, One.tick, None, data(1, b"x" * 20)[15:]],
        [lambda one: one.protocol.drain(), data(1, pieces(message(LONG), 3)[2], end=True), None],
        [lambda one: one.protocol.cancel_calls(), data(1, b"more"), None],
        [lambda one: one.protocol.connection_lost(None)],
    ],
)
def test_a_request_in_pieces_ends_in_every_way(events: list[Event]) -> None:
    begun: list[Event] = [GREETING, BEGUN_IN_PIECES]
    compare(begun + events, Limits())
    compare(begun + events, SMALL)


@pytest.mark.parametrize("body", [b"broken", b"later", b"large", b"odd", b"none", b"others"])
def test_whatever_comes_of_a_request_in_pieces(body: bytes) -> None:
    said = headers(1, TIMED) + in_pieces(1, body + LONG, 4) + call(3, b"others") + headers(5, HEAD)
    rest: list[Event] = [answer_one, data(5, message(b"m"), end=True), One.tick, One.tick, None, None]
    compare([GREETING, said, *rest], Limits())
    compare([GREETING, said, *rest], SMALL)


@pytest.mark.parametrize("frame", [40_000, 16_384])
def test_who_sends_more_than_half_a_window_has_it_opened(frame: int) -> None:
    body = message(b"x" * 200_000)
    parts = [body[at : at + frame] for at in range(0, len(body), frame)]
    said = [data(1, part, end=part is parts[-1]) for part in parts]
    limits = Limits(stream_window=65_535, connection_window=100_000)
    compare([GREETING, headers(1, HEAD) + said[0], *said[1:]], limits)
    compare([GREETING, headers(1, HEAD) + b"".join(said)], limits)


TIMED = HEAD + Literal(b"grpc-timeout", b"1500m").encode()
SOONER = HEAD + Literal(b"grpc-timeout", b"500m").encode()
HELD_CALLS = b"".join(call(at, b"later %d" % at) for at in (1, 3, 5))


def answer_one(one: One) -> None:
    one.short.answer_one()


def test_held_calls_are_answered_by_the_lane() -> None:
    answers = [answer_one, None, answer_one, answer_one, None]
    assert compare([GREETING, HELD_CALLS, *answers], Limits()) == 3
    assert compare([GREETING, begun_together(3, body=b"later"), *answers], Limits()) == 3


def test_a_held_call_ends_in_every_way() -> None:
    timed = headers(1, TIMED) + data(1, message(b"later"), end=True)
    assert compare([GREETING, timed, One.tick, None, One.tick, None, None, answer_one], Limits()) == 1
    assert compare([GREETING, timed, answer_one, One.tick, None, One.tick, None], Limits()) == 1
    sooner = headers(3, SOONER) + data(3, message(b"later"), end=True)
    assert compare([GREETING, timed + sooner, One.tick, None, answer_one, One.tick, None, None], Limits()) == 2
    assert compare([GREETING, timed + sooner, One.tick, One.tick, None, None, answer_one], Limits()) == 2
    assert compare([GREETING, timed, sooner, answer_one, One.tick, None, None, answer_one], Limits()) == 2
    assert compare([GREETING, HELD_CALLS + rst_stream(3), answer_one, answer_one, answer_one], Limits()) == 3
    assert compare([GREETING, HELD_CALLS + data(3, b"more"), answer_one, answer_one, answer_one], Limits()) == 3
    assert compare([GREETING, HELD_CALLS + headers(3, HEAD, end=True), answer_one, answer_one], Limits()) == 3
    for happens in (lambda one: one.protocol.cancel_calls(), lambda one: one.protocol.connection_lost(None)):
        assert compare([GREETING, HELD_CALLS, answer_one, happens, answer_one, answer_one], Limits()) == 3


def test_a_held_call_whose_metadata_cannot_be_read_harms_nobody() -> None:
    """Nobody asks for it: the call is held and answered as any other, and so are those beside it."""
    odd = HEAD + Literal(b"x-bin", b"A").encode()
    blocks = ((1, HEAD), (3, odd), (5, HEAD))
    said = [headers(at, block) + data(at, message(b"later"), end=True) for at, block in blocks]
    assert compare([GREETING, b"".join(said), answer_one, answer_one, answer_one], Limits()) == 3
    assert compare([GREETING, *said, answer_one, answer_one, answer_one], Limits()) == 3


@pytest.mark.parametrize("timeouts", [b"1500 1500 1500", b"1300 1400 1500", b"1500 1400 1300", b"1300 1500 1400"])
@pytest.mark.parametrize("apart", list(product([False, True], repeat=3)))
def test_deadlines_that_pass_in_the_same_turn(apart: tuple[bool, ...], timeouts: bytes) -> None:
    """Of calls that the lane holds, and of Python's, whose requests end apart."""
    talk, said = Talk(), b""
    for is_apart, timeout in zip(apart, timeouts.split(), strict=True):
        block = HEAD + Literal(b"grpc-timeout", timeout + b"m").encode()
        said += talk.call(block, b"later", 2, "apart" if is_apart else "")
    taken = compare([GREETING, said, One.tick, None, One.tick, None, None], Limits())
    assert taken == apart.count(False)


@pytest.mark.parametrize("lane", [True, False])
def test_an_answer_leaves_at_once_where_no_other_call_is_open(lane: bool) -> None:
    states, _ = run([GREETING, HELD_CALLS, answer_one, answer_one, answer_one], Limits(), lane=lane)
    queued = [bool(one["queued"]) for one in states[2:5]]
    assert queued == [True, True, False], "the answers of a turn leave together"


def test_a_held_call_whose_answer_does_not_leave_in_one_piece_is_pythons() -> None:
    shut = settings([(Setting.INITIAL_WINDOW_SIZE, 3)])
    opened = window_update(1, 5) + window_update(3, 1000) + settings([(Setting.INITIAL_WINDOW_SIZE, 60)])
    assert compare([GREETING, HELD_CALLS + shut, answer_one, answer_one, opened, answer_one], Limits()) == 3
    full = [lambda one: one.congest(True), answer_one, answer_one, lambda one: one.congest(False), None, answer_one]
    assert compare([GREETING, HELD_CALLS, *full], Limits()) == 3
    table = settings([(Setting.HEADER_TABLE_SIZE, 0)])
    assert compare([GREETING, HELD_CALLS + table, answer_one, answer_one], Limits()) == 3
    long = call(1, b"later" + b"x" * 994)
    assert compare([GREETING, long, answer_one], SMALL) == 1


def test_what_the_slice_has_no_time_for_begins_in_the_next_one() -> None:
    async def go() -> None:
        one = One(Limits(), lane=True, enough=lambda: True)
        one.protocol.data_received(GREETING)
        while is_behind(one):
            await asyncio.sleep(0)
        one.protocol.data_received(begun_together(40))
        assert is_behind(one)
        assert not one.connection.streams
        for _ in range(100):
            await asyncio.sleep(0)
        assert not is_behind(one)
        assert one.taken == 40
        assert [text for text, _ in one.short.asked] == [b"m"] * 40
        one.protocol.connection_lost(None)

    run_by_hand(go())


def test_what_the_short_way_leaves_is_handled() -> None:
    """And what is sent to methods without one: as without a lane, the handlers are called."""
    others = [headers(at, literals(request_fields(name))) for at, name in ((3, "Wait"), (5, "Repeat"))]
    sent = call(1, b"none") + b"".join(
        head + data(3 + 2 * at, message(b"m"), end=True) for at, head in enumerate(others)
    )
    for lane in (True, False):
        states, _ = run([GREETING + sent, None, None, None], Limits(), lane=lane)
        assert states[-1]["handled"] == [b"none", b"m"]
        assert str(states[-1]["written"]).count("handler failed") == 0


@pytest.mark.slow
def test_windows_are_granted_again() -> None:
    calls = [call(1 + 2 * at, b"x" * 900) + window_update(0, 1000) for at in range(400)]
    assert compare([GREETING, *calls], SMALL) > 380


def test_who_sends_much_is_stopped_by_the_lane_too() -> None:
    sent = b"".join(call(1 + 2 * at, b"%d" % at) for at in range(20))

    async def go(lane: bool) -> bytes:
        one = One(Limits(), lane=lane, enough=lambda: True)
        one.protocol.data_received(GREETING + sent)
        assert is_behind(one)
        first = len(one.short.asked)
        assert 0 < first < 4
        while is_behind(one):
            await asyncio.sleep(0)
        assert one.transport.said == ["pause", "resume"]
        one.protocol.connection_lost(None)
        return one.transport.written

    assert run_by_hand(go(True)) == run_by_hand(go(False))


def test_reads_that_are_all_the_lanes_do_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [call(1, b"m"), begun_together(3, first=3), call(9, b"later"), call(11, b"others")]

    async def go() -> None:
        one = One(Limits(), lane=True)
        one.protocol.data_received(GREETING)
        for name in ("read", "have_read", "_schedule"):
            monkeypatch.setattr(one.protocol, name, lambda *_: pytest.fail("Python was asked"))
        for whole in calls:
            one.protocol.data_received(whole)
        assert one.taken == 6
        assert one.transport.written.count(b"short ") == 5
        assert one.transport.written.index(b"at last later") < one.transport.written.index(b"short others")

    run_by_hand(go())
    assert compare([GREETING, *calls], Limits()) == 6
    assert compare([GREETING, b"".join(calls)], Limits()) == 6


def test_the_heads_of_two_methods_in_turn_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer receives and acknowledges."""
    blocks = [HEAD + Literal(b"grpc-timeout", timeout).encode() for timeout in (b"1S", b"20S")]

    async def go() -> None:
        one, read = One(Limits(), lane=True), list[bytes]()
        head = one.connection.head

        def counted(block: bytes) -> object:
            read.append(block)
            return head(block)

        monkeypatch.setattr(one.connection, "head", counted)
        one.protocol.data_received(GREETING)
        for stream in range(1, 17, 2):
            said = headers(stream, blocks[stream // 2 % 2]) + data(stream, message(b"later"), end=True)
            one.protocol.data_received(said)
            one.short.answer_one()
        assert (one.taken, read) == (8, [blocks[0]] * 2 + [blocks[1]] * 2), "for its metadata, and for its time"
        one.protocol.connection_lost(None)

    run_by_hand(go())


def test_a_lane_goes_on_after_what_python_has_read() -> None:
    whole = call(3, b"m")
    events: list[Event] = [GREETING + call(1, b"m") + whole[:20], whole[20:], call(5, b"m") + ping(), call(7, b"m")]
    assert compare(events, Limits()) == 4
    assert compare([GREETING, One.break_socket, call(1, b"m"), call(3, b"m")], Limits()) == 1
    assert compare([GREETING, HELD_CALLS, call(7, b"others"), call(9, b"broken") + call(11, b"m")], Limits()) == 6


def test_what_was_answered_before_an_interrupt_stays_to_be_sent() -> None:
    async def go(lane: bool) -> tuple[bytes, int, bytes]:
        one = One(Limits(), lane=lane)
        one.protocol.data_received(GREETING)
        before = len(one.transport.written)

        def stopped(message: bytes, _call: DirectCall) -> bytes:
            if message == b"stop":
                raise KeyboardInterrupt
            return message

        one.server.add_direct_method(PROBE + "Echo", stopped)
        with pytest.raises(KeyboardInterrupt):
            one.protocol.data_received(call(1, b"m") + call(3, b"stop"))
        left = b"".join(map(bytes, one.connection.sender.output)), one.connection.sender.size
        one.protocol.flush()
        one.protocol.connection_lost(None)
        return *left, one.transport.written[before:]

    assert run_by_hand(go(True)) == run_by_hand(go(False))


def test_a_call_that_an_interrupt_broke_off_looks_at_its_frames_no_more() -> None:
    async def go() -> None:
        one = One(Limits(), lane=True)
        shown: list[DirectCall] = []

        def stopped(_message: bytes, asked: DirectCall) -> NoReturn:
            shown.append(asked)
            raise KeyboardInterrupt

        one.server.add_direct_method(PROBE + "Echo", stopped)
        with pytest.raises(KeyboardInterrupt):
            one.protocol.data_received(GREETING + call(1, b"m"))
        with pytest.raises(RuntimeError, match="answered"):
            shown[0].invocation_metadata()
        one.protocol.connection_lost(None)

    run_by_hand(go())


def test_calls_beside_one_that_an_interrupt_broke_off_are_not_another_connection_s() -> None:
    """What had begun with it is forgotten: its frames are gone when the next read comes, whoever's that is."""

    async def go() -> None:
        one = One(Limits(), lane=True)
        other = Protocol(one.server)
        with closing(socket.socket()) as plain:
            other.connection_made(NoSocket(plain))

        def stopped(message: bytes, _call: DirectCall) -> None:
            if message == b"stop":
                raise KeyboardInterrupt

        one.server.add_direct_method(PROBE + "Echo", stopped)
        large = headers(1, HEAD) + data(1, message(LONG), end=True)
        other.data_received(GREETING + large[:-400])
        one.protocol.data_received(GREETING)
        with pytest.raises(KeyboardInterrupt):
            one.protocol.data_received(headers(1, HEAD) + headers(3, HEAD) + data(1, message(b"stop"), end=True))
        other.data_received(large[-400:])
        assert other.connection.last_stream_id == 1
        for protocol in (one.protocol, other):
            protocol.connection_lost(None)

    run_by_hand(go())


def test_blocks_with_a_table_are_pythons() -> None:
    """Before the client acknowledges that there is no table, and after."""
    block = indexed(3) + indexed(6) + Literal(b":path", b"/tandemmq.test.Probe/Echo", Indexing.INCREMENTAL).encode()
    rest = literals([(b"te", b"trailers"), (b"content-type", b"application/grpc")])
    first = headers(1, block + rest) + data(1, message(b"a"), end=True)
    again = headers(3, indexed(3) + indexed(6) + indexed(62) + rest) + data(3, message(b"b"), end=True)
    assert compare([hello() + first + again], Limits()) == 0
    assert compare([GREETING + first + again], Limits()) == 1
