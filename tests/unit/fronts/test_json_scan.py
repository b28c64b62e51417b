"""The compiled scan of headers in JSON: it says what the codec and the fields say, or nothing."""

import pytest
from hypothesis import strategies as st

from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader, Serialization
from tandemmq.common.wire.remoting.header_scan import FieldKind, HeaderScan, JsonRead, Scanned, Scans
from tandemmq.store.compiled_core import core_problem
from tandemmq.store.fronts.remoting.pull_header import PULL_SCANS, PullHeader
from tandemmq.store.fronts.remoting.scans import SCANS
from tests.campaigns import examples

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

PLAIN = {
    "queueId": "1", "maxMsgBytes": "2147483647", "maxMsgNums": "32", "sysFlag": "3", "suspendTimeoutMillis": "15000",
    "commitOffset": "0", "bname": "broker-a", "topic": "orders", "queueOffset": "12", "expressionType": "TAG",
    "subscription": "a || b", "subVersion": "1760000000123", "consumerGroup": "group",
}  # fmt: skip
_JAVA_4 = (
    "queueId", "maxMsgBytes", "maxMsgNums", "sysFlag", "suspendTimeoutMillis", "commitOffset", "bname", "topic",
    "queueOffset", "expressionType", "subVersion", "consumerGroup",
)  # fmt: skip


def read(scan: HeaderScan) -> JsonRead:
    from tandemmq.store.fronts.remoting.compiled.json_scan import CompiledJsonScan

    return CompiledJsonScan(scan.code, scan.fields).scan


def header(fields: dict[str, str], code: int = RequestCode.PULL_MESSAGE, flag: int = 0, opaque: int = 7) -> bytes:
    (one,) = RemotingFrameReader().receive(codec.encode(Command(code, fields=fields, opaque=opaque, flag=flag)))
    return one.header


values = st.sampled_from(
    ["", "0", "-1", "007", "-", "12", "1234567890", "2147483647", "9" * 18, "9" * 19, "true", "x y"]
)
texts = values | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    fields = dict(draw(st.permutations(sorted(PLAIN.items()))))
    for name in draw(st.lists(st.sampled_from([*PLAIN, "lo"]), max_size=2)):
        if draw(st.booleans()):
            fields[name] = draw(texts)
        else:
            fields.pop(name, None)
    head = {
        "flag": draw(st.sampled_from([0, 0, 2, 1])),
        "opaque": draw(st.sampled_from([0, -5, 999_999_999, 2**31 - 1])),
    }
    made = header(fields, **head)
    if draw(st.booleans()):
        return made
    at = draw(st.integers(0, len(made) - 1))
    return made[:at] + draw(st.binary(max_size=2)) + made[at + draw(st.integers(0, 2)) :]


@examples(100, 8_000, headers())
def test_it_says_what_the_codec_says_or_nothing(given: bytes) -> None:
    found = read(PULL_SCANS[0])(given)
    frame = RemotingFrame(Serialization.JSON, given, b"")
    by_pattern = PULL_SCANS[0].scan(frame)
    if by_pattern is not None and given.isascii():
        assert found is not None, "a scan in Python takes it"
    if found is None:
        return
    scanned, opaque, flag, language, version = found
    command = codec.decode(frame)
    assert (command.code, command.opaque, command.flag) == (RequestCode.PULL_MESSAGE, opaque, flag)
    assert (command.language, command.version, command.remark) == (language, version, None)
    assert PullHeader.of(Command(11, scanned=scanned)) == PullHeader.of(command)
    assert by_pattern is None or PullHeader.of(by_pattern) == PullHeader.of(command)


def test_what_java_sends_is_taken() -> None:
    for scan in PULL_SCANS:
        found = read(scan)(header({name: PLAIN[name] for name in _JAVA_4}, scan.code))
        assert found is not None
        assert found[0][:3] == ("group", "orders", 1)
        assert found[1:] == (7, 0, "JAVA", 477)


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"code":11}', b'{"code":11,"extFields":{}', b'{"code":11,"extFields":{"a":"b"', b'{"code":11,"extFields":{"',
        header({**PLAIN, "topic": "ä"}), header({**PLAIN, "topic": 'a"b'}), header({**PLAIN, "topic": ""}),
        header({**PLAIN, "queueId": "+1"}), header({**PLAIN, "queueId": "1_0"}), header({**PLAIN, "sysFlag": ""}),
        header(PLAIN).replace(b'"topic":"orders"', b'"topic":"orders","topic":"others"'), header(PLAIN, 10),
        header(PLAIN)[:-1], header(PLAIN) + b" ", header(PLAIN).replace(b'"version":', b'"version":0'),
    ],
)  # fmt: skip
def test_the_rest_is_left_to_python(wrong: bytes) -> None:
    assert read(PULL_SCANS[0])(wrong) is None


def test_scans_ask_it_first_and_the_pattern_after_it() -> None:
    asked: list[int] = []

    def twin(scan: HeaderScan) -> JsonRead:
        def quick(data: bytes) -> Scanned | None:
            asked.append(scan.code)
            return read(scan)(data)

        return quick

    scans, alone = Scans(SCANS), Scans(SCANS)
    scans.begin_with(twin)
    for text in ("orders", "ordérs"):
        fields = {name: text if name == "topic" else PLAIN[name] for name in _JAVA_4}
        frame = RemotingFrame(Serialization.JSON, header(fields), b"body")
        found, expected = scans.scan(frame), alone.scan(frame)
        assert found is not None
        assert expected is not None
        assert (found.opaque, found.body, PullHeader.of(found)) == (7, b"body", PullHeader.of(expected))
    assert asked == [RequestCode.PULL_MESSAGE] * 2
    with_properties = {scan.code for scan in SCANS if any(one.kind is FieldKind.PROPERTIES for one in scan.fields)}
    assert RequestCode.SEND_MESSAGE_V2 in with_properties
