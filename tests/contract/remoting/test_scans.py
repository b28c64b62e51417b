"""Headers that are scanned say what the parser says, or are left to it."""

import base64
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.errors import BadField, BadHeader
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader, Serialization
from tandemmq.common.wire.remoting.header_scan import Scans
from tandemmq.store.fronts.remoting.pop_header import PopHeader, ReceiptHeader
from tandemmq.store.fronts.remoting.pull_header import PullHeader
from tandemmq.store.fronts.remoting.scans import SCANS
from tandemmq.store.fronts.remoting.sent_message import SendHeader
from tests.golden import captured_frames

scan = Scans(SCANS).scan
READ: dict[int, Callable[[Command], object]] = {
    RequestCode.SEND_MESSAGE_V2: SendHeader.short,
    RequestCode.SEND_BATCH_MESSAGE: SendHeader.short,
    RequestCode.PULL_MESSAGE: PullHeader.of,
    RequestCode.LITE_PULL_MESSAGE: PullHeader.of,
    RequestCode.POP_MESSAGE: PopHeader.of,
    RequestCode.ACK_MESSAGE: ReceiptHeader.of,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: ReceiptHeader.of,
}
ORDERS = {
    RequestCode.SEND_MESSAGE_V2: "a b c d e f g h i j k l m n",
    RequestCode.SEND_BATCH_MESSAGE: "a b c d e f g h i j k m n",
    RequestCode.PULL_MESSAGE: (
        "queueId maxMsgBytes maxMsgNums sysFlag suspendTimeoutMillis commitOffset bname topic queueOffset"
        " expressionType subVersion consumerGroup"
    ),
    RequestCode.LITE_PULL_MESSAGE: (
        "queueId commitOffset subscription suspendTimeoutMillis bname sysFlag expressionType ReqT topic consumerGroup"
        " maxMsgNums queueOffset subVersion maxMsgBytes"
    ),
    RequestCode.POP_MESSAGE: (
        "pollTime invisibleTime queueId bornTime maxMsgNums bname topic expType exp consumerGroup initMode order"
    ),
    RequestCode.ACK_MESSAGE: "queueId offset bname topic consumerGroup extraInfo",
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: "invisibleTime queueId offset bname topic consumerGroup extraInfo",
}
TEXTS = {"a", "b", "c", "i", "n", "bname", "topic", "consumerGroup", "extraInfo", "expType", "exp", "subscription"}
FLAGS = {"k", "m", "order"}
NUMBERS = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.integers(0, 10**9).map(str),
    st.sampled_from(["", "0", "-0", "-1", "007", "+5", " 5", "5 ", "1_0", "x", "٣", "1e3", "999999999", "1000000000"]),
)
WORDS = st.one_of(
    st.text(max_size=8),
    st.text('ab\x01\x02\\"\t\n\0é😀', max_size=8),
    st.sampled_from(["topic", "KEYS\x01k\x02TAGS\x01A\x02"]),
)


def value_of(name: str) -> st.SearchStrategy[str]:
    if name in FLAGS:
        return st.sampled_from(["true", "false", "TRUE", "", "no"])
    return WORDS if name in TEXTS or name == "expressionType" else NUMBERS


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Frames as clients write them, now and then with a field less, one more, or in another order."""
    code = draw(st.sampled_from(sorted(ORDERS)))
    names = ORDERS[RequestCode(code)].split()
    if draw(st.integers(0, 3)) == 0:
        names = draw(st.permutations(names))
    left_out = draw(st.sets(st.sampled_from(names), max_size=2))
    fields = {name: draw(value_of(name)) for name in names if name not in left_out}
    if draw(st.integers(0, 7)) == 0:
        fields[draw(st.sampled_from(["Signature", "ns", "x"]))] = draw(WORDS)
    serialization = draw(st.sampled_from(Serialization)) if code < 1 << 15 else Serialization.JSON
    command = Command(
        code,
        draw(st.integers(-(2**31), 2**31 - 1)),
        draw(st.sampled_from([0, 0, 0, 1, 2, 3])),
        fields or None,
        b"body",
        draw(st.sampled_from([None, None, None, "remark"])),
        draw(st.sampled_from(["JAVA", "GO", "CPP"])),
        draw(st.integers(0, 500)),
        serialization,
    )
    try:
        return codec.encode(command)
    except UnicodeEncodeError:
        command.fields = None
        return codec.encode(command)


def frame_of(raw: bytes) -> RemotingFrame:
    (frame,) = RemotingFrameReader().receive(raw)
    return frame


def agree(frame: RemotingFrame) -> bool:
    """Whether the scan has taken it; it must be what the parser says."""
    scanned = scan(frame)
    if scanned is None:
        return False
    parsed = codec.decode(frame)
    assert READ[scanned.code](scanned) == READ[parsed.code](parsed)
    assert not scanned.is_response
    for name in ("code", "opaque", "flag", "body", "remark", "language", "version", "serialization"):
        assert getattr(scanned, name) == getattr(parsed, name), name
    return True


@pytest.mark.slow
@given(requests())
def test_a_scan_says_what_the_parser_says(raw: bytes) -> None:
    agree(frame_of(raw))


@pytest.mark.slow
@given(requests(), st.data())
def test_damaged_headers_too(raw: bytes, data: st.DataObject) -> None:
    """A scan never takes what the parser refuses."""
    frame = frame_of(raw)
    header = bytearray(frame.header)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(header) - 1))
        header[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        if not header:
            break
    damaged = RemotingFrame(frame.serialization, bytes(header), frame.body)
    try:
        agree(damaged)
    except (BadHeader, BadField) as error:
        pytest.fail(f"scanned, and the parser says: {error}")


@pytest.mark.golden
@pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])
def test_what_java_clients_send_is_scanned(version: str) -> None:
    """All hot requests of the captures but those that are signed."""
    taken: Counter[tuple[int, bool]] = Counter()
    for line in captured_frames(version):
        if line.get("direction") != "to_server" or line.get("code") not in READ or not line.get("raw"):
            continue
        fields: dict[str, Any] = line["extFields"] or {}
        signed = "Signature" in fields
        assert agree(frame_of(base64.b64decode(line["raw"]))) is not signed, fields
        taken[line["code"], signed] += 1
    assert taken[RequestCode.SEND_MESSAGE_V2, False] > 600
    assert taken[RequestCode.PULL_MESSAGE, False] > 500
    assert taken[RequestCode.SEND_BATCH_MESSAGE, False] >= 2


def test_a_header_of_another_code_or_form_is_left_alone() -> None:
    for raw in (b"", b"{", b'{"code":', b'{"code":310', b'{"code":310,', b'{"code":99,"extFields":{}}', b"\xff" * 40):
        for serialization in Serialization:
            assert scan(RemotingFrame(serialization, raw, b"")) is None


@example(2_000)
@given(st.integers(0, 3_000))
def test_a_long_text_that_does_not_match_costs_no_more_than_its_length(size: int) -> None:
    """Nothing is tried twice: the patterns give back nothing of what they have taken."""
    text = "\\u0001a" * size + "\\x"
    header = f'{{"code":310,"extFields":{{"a":"g","b":"t","e":"0","f":"0","g":"0","h":"0","i":"{text}"}}}}'
    assert scan(RemotingFrame(Serialization.JSON, header.encode(), b"")) is None
