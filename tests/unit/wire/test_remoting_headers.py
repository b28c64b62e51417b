"""Headers of the remoting protocol: both serializations, exact bytes, and hostile ones."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode, name_of
from tandemmq.common.wire.remoting.command import ONE_WAY, RESPONSE, Command
from tandemmq.common.wire.remoting.errors import BadField, BadHeader, NotEncodable
from tandemmq.common.wire.remoting.fields import Fields
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader, Serialization

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
COMMANDS = st.builds(
    Command,
    INT16,
    INT32,
    INT32,
    st.none() | st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=4),
    st.binary(max_size=30),
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.sampled_from(["JAVA", "CPP", "PYTHON", "GO", "NODE_JS", "OTHER"]),
    INT16,
    st.sampled_from(Serialization),
)


def read(raw: bytes) -> Command:
    (frame,) = RemotingFrameReader().receive(raw)
    return codec.decode(frame)


def decode_json(header: bytes) -> Command:
    return codec.decode(RemotingFrame(Serialization.JSON, header, b""))


@given(COMMANDS)
def test_a_command_is_read_as_it_was_written(command: Command) -> None:
    assert read(codec.encode(command)) == command


def test_the_vectors_of_a_java_slave() -> None:
    """GET_ALL_TOPIC_CONFIG as a slave of 4.9.8 sends it, and its binary form."""
    request = Command(RequestCode.GET_ALL_TOPIC_CONFIG, opaque=6, version=409)
    assert codec.encode(request).hex() == (
        "00000064000000607b22636f6465223a32312c22666c6167223a302c226c616e6775616765223a224a415641222c226f7061717565223a"
        "362c2273657269616c697a655479706543757272656e74525043223a224a534f4e222c2276657273696f6e223a3430397d"
    )
    request.serialization = Serialization.ROCKETMQ
    assert codec.encode(request).hex() == "0000001901000015001500019900000006000000000000000000000000"


def test_an_answer_goes_back_in_the_form_of_its_request() -> None:
    request = Command(RequestCode.HEART_BEAT, opaque=-7, flag=0, serialization=Serialization.ROCKETMQ)
    answer = request.answer(ResponseCode.SYSTEM_BUSY, {"a": "b"}, b"c", "later")
    assert answer == Command(2, -7, RESPONSE, {"a": "b"}, b"c", "later", serialization=Serialization.ROCKETMQ)
    assert answer.is_response
    assert not answer.flag & ONE_WAY


def test_the_smallest_header() -> None:
    assert decode_json(b'{"code":105,"opaque":3}') == Command(105, 3, 0, None, language="OTHER", version=0)


def test_values_that_are_no_texts_become_texts_and_nulls_are_absent() -> None:
    said = b'{"code":1,"extFields":{"a":1,"b":true,"c":null,"d":"e","f":[1,2]},"more":{}}'
    assert decode_json(said).fields == {"a": "1", "b": "true", "d": "e", "f": "[1,2]"}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"1",
        b"{}",
        b'{"opaque":1}',
        b'{"code":"1"}',
        b'{"code":true}',
        b'{"code":1.0}',
        b'{"code":2147483648}',
        b'{"code":1,"opaque":99999999999999999999}',
        b'{"code":1,"flag":null}',
        b'{"code":1,"language":1}',
        b'{"code":1,"remark":{}}',
        b'{"code":1,"extFields":[]}',
        b'{"code":1,"extFields":{"a":"\\ud800"}}',
        b'{"code":1,"remark":"\xff"}',
        b'{"code":' + b"1" * 5000 + b"}",
        b'{"a":' * 100_000,
    ],
)
def test_a_json_header_that_cannot_be_read_is_told(header: bytes) -> None:
    with pytest.raises(BadHeader):
        decode_json(header)


@given(st.binary(max_size=80))
@example(bytes.fromhex("0015000199000000060000000000000000ffffffff"))
@example(bytes.fromhex("001500019900000006000000007fffffff00000000"))
@example(bytes.fromhex("00150001990000000600000000ffffffff00000000"))
@example(bytes.fromhex("001500019900000006000000000000000000000006ffff00000000"))
@example(bytes.fromhex("0015000199000000060000000000000000000000070001610000000162"))
def test_hostile_headers_are_commands_or_bad(header: bytes) -> None:
    for serialization in Serialization:
        try:
            command = codec.decode(RemotingFrame(serialization, header, b""))
        except BadHeader:
            continue
        command.serialization = serialization
        assert read(codec.encode(command)).code == command.code


@given(COMMANDS, st.data())
def test_damaged_headers_are_commands_or_bad(command: Command, data: st.DataObject) -> None:
    raw = bytearray(codec.encode(command))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(8, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(read(bytes(raw)), Command)
    except BadHeader:
        return


def test_what_has_no_binary_form_is_told() -> None:
    with pytest.raises(NotEncodable, match="200050"):
        codec.encode(Command(200050, serialization=Serialization.ROCKETMQ))
    with pytest.raises(NotEncodable, match="32767"):
        codec.encode(Command(1, fields={"x" * 40000: ""}, serialization=Serialization.ROCKETMQ))


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    for serialization in Serialization:
        written = codec.encode(Command(1, remark="a\ud800b", fields={"k": "\udfff"}, serialization=serialization))
        assert read(written).remark == "a?b"


def test_typed_fields() -> None:
    fields = Fields({"n": "12", "big": "-9223372036854775808", "yes": "TRUE", "no": "1", "t": "x", "e": ""})
    assert (fields.int32("n"), fields.int64("big"), fields.flag("yes"), fields.flag("no")) == (
        12,
        -(2**63),
        True,
        False,
    )
    assert (fields.text("t"), fields.text_or("e", None), fields.text_or("t", None)) == ("x", None, "x")
    assert (fields.int32_or("e", 3), fields.int64_or("x", None), fields.flag_or("x", True)) == (3, None, True)
    assert (fields.int32_or("n", 0), fields.int64_or("n", 0), fields.flag_or("yes", False)) == (12, 12, True)


@pytest.mark.parametrize("value", ["", "x", "1.0", "1_0", " 1", "１２", "2147483648", "9" * 5000, "0x10"])
def test_a_field_that_is_no_number_is_told_with_its_name(value: str) -> None:
    with pytest.raises(BadField, match="<n>"):
        Fields({"n": value}).int32("n")


def test_a_missing_field_is_told_in_rocketmqs_words() -> None:
    with pytest.raises(BadField, match="the custom field <topic> is null"):
        Fields(None).text("topic")


def test_codes_have_names() -> None:
    assert name_of(310) == "SEND_MESSAGE_V2"
    assert name_of(31999) == "CODE_31999"
