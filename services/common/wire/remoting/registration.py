"""What a broker says of itself to a name server: REGISTER_BROKER (103) and its kin, both ways.

The header has broker name, id, address and cluster; the body has the topics and their version, as JSON or, compressed,
as a zlib stream::

    int32 length, DataVersion as JSON
    int32 number of topics, { int32 length, topic: "name readQueues writeQueues perm filterType [attributes]" }*
    int32 length, filter servers as JSON
    [ what follows is of static topics, and not read ]

`bodyCrc32` is the CRC-32 of the body as it is sent, without its highest bit; 0: not checked. A registration with a
header version below 37 has another body: a broker must never send such a version.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tandemmq.common.documents import java_json
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.fields import Fields
from tandemmq.common.wire.remoting.java_objects import pieces

INFLATED_BYTES_MAX = 64 << 20
"""What a compressed body may become."""

_LENGTH = struct.Struct(">i")
_CRC_MASK = 0x7FFF_FFFF


class BadRegistration(TandemError):
    """The body of a registration is not what it should be."""

    kind = Kind.INVALID


class RegistrationVersion(NamedTuple):
    """The version of a table of topics: equal versions mean equal content. Ordered by mastership first."""

    state: int = 0
    """The epoch of the mastership; 0 for brokers that have none."""
    counter: int = 0
    timestamp: int = 0
    """ms since 1970."""

    def to_json(self) -> dict[str, object]:
        """By RocketMQ's names."""
        return {"counter": self.counter, "stateVersion": self.state, "timestamp": self.timestamp}

    @classmethod
    def from_json(cls, said: Any) -> "RegistrationVersion":
        """What a body says; 4.9 has no stateVersion. Raises BadRegistration."""
        if not isinstance(said, Mapping):
            raise BadRegistration("dataVersion is no object")
        numbers = [said.get(name, 0) for name in ("stateVersion", "counter", "timestamp")]
        if not all(type(one) is int and 0 <= one < 2**63 for one in numbers):
            raise BadRegistration("dataVersion is no object of numbers")
        return cls(*numbers)


@dataclass(frozen=True, slots=True)
class RegisteredTopic:
    """A topic on one broker (RocketMQ: ``TopicConfig``)."""

    name: str
    read_queues: int
    write_queues: int
    perm: int
    """4 read, 2 write, 1 inherit."""
    sys_flag: int = 0
    """1 unit, 2 has unit subscriptions."""
    order: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As RocketMQ 5 writes it."""
        return {
            "attributes": dict(self.attributes),
            "order": self.order,
            "perm": self.perm,
            "readQueueNums": self.read_queues,
            "topicFilterType": "SINGLE_TAG",
            "topicName": self.name,
            "topicSysFlag": self.sys_flag,
            "writeQueueNums": self.write_queues,
        }

    @classmethod
    def from_json(cls, name: str, said: Any) -> "RegisteredTopic":
        """Raises BadRegistration."""
        if not isinstance(said, Mapping):
            raise BadRegistration(f"the topic {name} is no object")
        return cls(
            name,
            _number(said, "readQueueNums", 16),
            _number(said, "writeQueueNums", 16),
            _number(said, "perm", 6),
            _number(said, "topicSysFlag", 0),
            said.get("order") is True,
        )


class _Table(Mapping[str, dict[str, object]]):
    """Topics as JSON, each when it is asked for."""

    def __init__(self, topics: Mapping[str, RegisteredTopic]) -> None:
        self._topics = topics

    def __getitem__(self, name: str) -> dict[str, object]:
        return self._topics[name].to_json()

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Who registers, unregisters, asks."""

    cluster: str
    name: str
    broker_id: int
    """0: the master."""
    address: str
    """`host:port` for clients."""

    def to_fields(self) -> dict[str, str]:
        """As header fields."""
        return {
            "brokerName": self.name,
            "brokerAddr": self.address,
            "clusterName": self.cluster,
            "brokerId": str(self.broker_id),
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> "BrokerIdentity":
        """Raises BadField."""
        return cls(
            fields.text("clusterName"), fields.text("brokerName"), fields.int64("brokerId"), fields.text("brokerAddr")
        )


@dataclass(frozen=True, slots=True)
class Registration:
    """One REGISTER_BROKER."""

    broker: BrokerIdentity
    ha_address: str
    """Where slaves dial."""
    version: RegistrationVersion
    topics: Mapping[str, RegisteredTopic]
    heartbeat_ms: int | None = None
    """After so long without a word the broker counts as gone; None: the name server's default."""
    acting_master: bool = False
    """enableActingMaster: a slave may stand for a master that is gone."""
    zone: str | None = None

    def body(self) -> Iterator[bytes]:
        """The body in pieces, a topic each: there may be many."""
        wrapper = {
            "dataVersion": self.version.to_json(),
            "mappingDataVersion": RegistrationVersion().to_json(),
            "topicConfigTable": _Table(self.topics),
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": {},
        }
        return pieces({"filterServerList": [], "topicConfigSerializeWrapper": wrapper}, depth=3)

    def to_command(self, body: bytes | None = None) -> Command:
        """The request, uncompressed. `body`: where it was put together already."""
        if body is None:
            body = b"".join(self.body())
        fields = self.broker.to_fields() | {
            "haServerAddr": self.ha_address,
            "compressed": "false",
            "bodyCrc32": str(zlib.crc32(body) & _CRC_MASK),
            "enableActingMaster": "true" if self.acting_master else "false",
        }
        if self.heartbeat_ms is not None:
            fields["heartbeatTimeoutMillis"] = str(self.heartbeat_ms)
        return Command(RequestCode.REGISTER_BROKER, fields=fields, body=body)

    @classmethod
    def from_command(cls, request: Command) -> "Registration":
        """Raises BadField, BadRegistration."""
        fields, body = Fields(request.fields), bytes(request.body)
        expected = fields.int32_or("bodyCrc32", 0)
        if expected and expected != zlib.crc32(body) & _CRC_MASK:
            raise BadRegistration("crc32 not match: the body is not what was sent")
        version, topics = _read_compressed(body) if fields.flag_or("compressed", False) else _read(body)
        return cls(
            BrokerIdentity.from_fields(fields),
            fields.text_or("haServerAddr", ""),
            version,
            topics,
            fields.int64_or("heartbeatTimeoutMillis", None),
            fields.flag_or("enableActingMaster", False),
            fields.text_or("__ZONE_NAME", None),
        )


def _read(body: bytes) -> tuple[RegistrationVersion, dict[str, RegisteredTopic]]:
    """Version and topics. The oldest brokers send the wrapper alone."""
    if not body:
        return RegistrationVersion(), {}
    try:
        said = java_json.loads(body)
    except ValueError as error:
        raise BadRegistration(f"the body is no JSON: {error}") from None
    wrapper = said.get("topicConfigSerializeWrapper", said)
    table = wrapper.get("topicConfigTable", {}) if isinstance(wrapper, Mapping) else None
    if not isinstance(table, Mapping):
        raise BadRegistration("the body has no table of topics")
    return RegistrationVersion.from_json(wrapper.get("dataVersion", {})), _topics(table)


def _topics(table: Mapping[str, Any]) -> dict[str, RegisteredTopic]:
    return {name: RegisteredTopic.from_json(name, said) for name, said in table.items()}


def _read_compressed(body: bytes) -> tuple[RegistrationVersion, dict[str, RegisteredTopic]]:
    parts = _parts(_inflated(body))
    try:
        version = RegistrationVersion.from_json(java_json.loads(next(parts)))
        (number,) = _LENGTH.unpack(next(parts))
        read = [_topic_of_text(next(parts).decode()) for _ in range(number)]
    except (StopIteration, ValueError):
        raise BadRegistration("the compressed body cannot be read") from None
    return version, {topic.name: topic for topic in read}


def _inflated(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(body, INFLATED_BYTES_MAX)
    except zlib.error as error:
        raise BadRegistration(f"the body is no zlib stream: {error}") from None
    if inflater.unconsumed_tail or not inflater.eof:
        raise BadRegistration(f"the compressed body is cut off, or becomes more than {INFLATED_BYTES_MAX} bytes")
    return data


def _parts(data: bytes) -> Iterator[bytes]:
    """The version, the number of topics (as its 4 bytes), and the topics. Raises BadRegistration."""
    position, number = 0, 0
    while position + 4 <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += 4
        if number == 1:
            yield data[position - 4 : position]
        elif 0 <= length <= len(data) - position:
            yield data[position : position + length]
            position += length
        else:
            raise BadRegistration(f"a part of {length} bytes in a body of {len(data)}")
        number += 1


def _topic_of_text(text: str) -> RegisteredTopic:
    """Raises ValueError."""
    name, read, write, perm = text.split(" ")[:4]
    return RegisteredTopic(name, int(read), int(write), int(perm))


def _number(said: Mapping[str, Any], name: str, default: int) -> int:
    value = said.get(name, default)
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise BadRegistration(f"{name} is no number: {str(value)[:40]}")
    return value
