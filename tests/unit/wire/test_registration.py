"""What brokers register: exact bodies, compressed ones, and hostile ones."""

import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.errors import TandemError
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import QueueKey, dumps
from tandemmq.common.wire.remoting.registration import (
    BadRegistration,
    BrokerIdentity,
    RegisteredTopic,
    Registration,
    RegistrationVersion,
)

WHO = BrokerIdentity("C", "b", 0, "h:1")
NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
TOPICS = st.builds(
    RegisteredTopic,
    NAMES,
    st.integers(0, 2**31 - 1),
    st.integers(0, 64),
    st.integers(0, 7),
    st.integers(0, 3),
    st.booleans(),
)
REGISTRATIONS = st.builds(
    Registration,
    st.builds(BrokerIdentity, NAMES, NAMES, st.integers(0, 2**62), NAMES),
    NAMES,
    st.builds(RegistrationVersion, *[st.integers(0, 2**62)] * 3),
    st.lists(TOPICS, max_size=4).map(lambda topics: {topic.name: topic for topic in topics}),
    st.none() | st.integers(1, 2**40),
    st.booleans(),
)


@pytest.mark.slow
@given(REGISTRATIONS)
def test_a_registration_is_read_as_it_was_written(said: Registration) -> None:
    assert Registration.from_command(said.to_command()) == said


def test_the_crc_of_the_facts() -> None:
    """The vector of ha-and-metadata.md, section 8."""
    body = (
        b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":1700000000000},'
        b'"topicConfigTable":{}}}'
    )
    command = Command(103, fields={**WHO.to_fields(), "bodyCrc32": "561324779"}, body=body)
    assert Registration.from_command(command).version == RegistrationVersion(0, 1, 1700000000000)
    with pytest.raises(BadRegistration, match="crc32 not match"):
        Registration.from_command(Command(103, fields=command.fields, body=body + b" "))


def test_what_we_send_is_what_brokers_send() -> None:
    said = Registration(WHO, "h:2", RegistrationVersion(3, 2, 1), {"T": RegisteredTopic("T", 4, 8, 6)}).to_command()
    assert said.code == RequestCode.REGISTER_BROKER
    assert said.version > 37, "below, a name server reads another body"
    assert said.fields == {
        "brokerName": "b",
        "brokerAddr": "h:1",
        "clusterName": "C",
        "brokerId": "0",
        "haServerAddr": "h:2",
        "compressed": "false",
        "bodyCrc32": str(zlib.crc32(said.body) & 0x7FFFFFFF),
        "enableActingMaster": "false",
    }
    assert json.loads(bytes(said.body))["topicConfigSerializeWrapper"]["topicConfigTable"]["T"]["writeQueueNums"] == 8


def compressed(*parts: bytes) -> Command:
    body = zlib.compress(b"".join(parts))
    return Command(103, fields={**WHO.to_fields(), "compressed": "true"}, body=body)


def part(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


VERSION = part(b'{"counter":7,"timestamp":5}')


def test_a_compressed_registration() -> None:
    rest = (part(b"T 4 8 6 SINGLE_TAG"), part(b'U 1 2 7 MULTI_TAG {"a":"b c"}'), part(b"[]"), bytes(4))
    read = Registration.from_command(compressed(VERSION, struct.pack(">i", 2), *rest))
    assert read.version == RegistrationVersion(0, 7, 5)
    assert list(read.topics.values()) == [RegisteredTopic("T", 4, 8, 6), RegisteredTopic("U", 1, 2, 7)]


@pytest.mark.parametrize(
    "command",
    [
        Command(103, fields=WHO.to_fields(), body=b"["),
        Command(103, fields=WHO.to_fields(), body=b'{"topicConfigSerializeWrapper":1}'),
        Command(103, fields=WHO.to_fields(), body=b'{"topicConfigTable":[]}'),
        Command(103, fields=WHO.to_fields(), body=b'{"topicConfigTable":{"T":1}}'),
        Command(103, fields=WHO.to_fields(), body=b'{"topicConfigTable":{"T":{"perm":"6"}}}'),
        Command(103, fields=WHO.to_fields(), body=b'{"dataVersion":{"counter":-1}}'),
        Command(103, fields=WHO.to_fields(), body=b'{"dataVersion":[]}'),
        Command(103, fields={**WHO.to_fields(), "brokerId": "x"}),
        Command(103),
        Command(103, fields={**WHO.to_fields(), "compressed": "true"}, body=b"abc"),
        Command(103, fields={**WHO.to_fields(), "compressed": "true"}, body=zlib.compress(bytes(99))[:-3]),
        Command(103, fields={**WHO.to_fields(), "compressed": "true"}, body=zlib.compress(bytes(65 << 20))),
        compressed(),
        compressed(VERSION),
        compressed(VERSION, struct.pack(">i", 1)),
        compressed(VERSION, struct.pack(">i", 1), struct.pack(">i", -1)),
        compressed(VERSION, struct.pack(">i", 1), part(b"T 4 x 6 SINGLE_TAG")),
        compressed(VERSION, struct.pack(">i", 1), part(b"T 4")),
        compressed(VERSION, struct.pack(">i", 1), part(b"\xff 4 4 6 x")),
    ],
)
def test_what_is_no_registration_is_told(command: Command) -> None:
    with pytest.raises(TandemError):
        Registration.from_command(command)


@given(st.binary(max_size=60), st.booleans())
def test_hostile_bodies_are_registrations_or_told(body: bytes, squeeze: bool) -> None:
    command = compressed(body) if squeeze else Command(103, fields=WHO.to_fields(), body=body)
    try:
        assert isinstance(Registration.from_command(command), Registration)
    except TandemError:
        return


def test_keys_that_only_fastjson_writes() -> None:
    table = {QueueKey("T", "b", 0): {"max": 3}, 4: [1, {5: None}], "x": True}
    assert dumps(table) == b'{{"brokerName":"b","queueId":0,"topic":"T"}:{"max":3},4:[1,{5:null}],"x":true}'
