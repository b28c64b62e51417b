"""A minimal client of RocketMQ's remoting protocol: just what the tests ask of a broker.

A frame: length of what follows (4), serialize type and header length (1 + 3), JSON header, body. One request at a time.
"""

import json
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tandemmq.client import Record, decode_records
from tandemmq.common.documents import java_json

QUERY_MESSAGE, PULL_MESSAGE, GET_ALL_TOPIC_CONFIG = 12, 11, 21
GET_BROKER_CLUSTER_INFO = 106
GET_BROKER_RUNTIME_INFO, GET_MAX_OFFSET, GET_MIN_OFFSET, VIEW_MESSAGE_BY_ID = 28, 30, 31, 33
SEND_MESSAGE_V2, SEND_BATCH_MESSAGE = 310, 320
SUCCESS, PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY, PULL_OFFSET_MOVED, QUERY_NOT_FOUND = 0, 19, 20, 21, 22

_VERSION_4_9_4 = 401
_SUBSCRIPTION_SUPPLIED = 4
_FOREVER = 4_102_444_800_000


@dataclass(frozen=True)
class Answer:
    """A response."""

    code: int
    fields: dict[str, str]
    remark: str
    body: bytes


class Refused(Exception):
    """The broker answered with another code than was hoped for."""


class Remoting:
    """A connection to a broker."""

    def __init__(self, port: int, timeout: float = 120.0, host: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout)
        self._stream = self._socket.makefile("rb")
        self._opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self._socket.close()

    def call(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Answer:
        """Sends a request and waits for its answer, whatever its code. Raises OSError."""
        self._opaque += 1
        header: dict[str, Any] = {"code": code, "flag": 0, "language": "OTHER", "opaque": self._opaque}
        header |= {"version": _VERSION_4_9_4, "extFields": {name: str(value) for name, value in (fields or {}).items()}}
        data = json.dumps(header).encode()
        length = 4 + len(data) + len(body)
        self._socket.sendall(length.to_bytes(4, "big") + len(data).to_bytes(4, "big") + data + body)
        while True:
            answer, opaque = self._receive()
            if opaque == self._opaque:
                return answer

    def _receive(self) -> tuple[Answer, int]:
        frame = self._read(int.from_bytes(self._read(4), "big"))
        end = 4 + (int.from_bytes(frame[:4], "big") & 0xFFFFFF)
        header = json.loads(frame[4:end])
        fields = header.get("extFields") or {}
        return Answer(header["code"], fields, header.get("remark") or "", frame[end:]), header["opaque"]

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionError("the broker has closed the connection")
        return data

    def ask(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Answer:
        """As `call`, but raises Refused unless the answer is a success."""
        answer = self.call(code, fields, body)
        if answer.code != SUCCESS:
            raise Refused(f"request {code} {fields}: code {answer.code}, {answer.remark}")
        return answer

    # -- what is asked ------------------------------------------------------------------------------------------------

    def send(self, topic: str, queue_id: int, body: bytes, properties: bytes, *, batch: bool = False) -> Answer:
        """Stores a message, or a client batch; the answer's fields say where (msgId, queueId, queueOffset)."""
        fields = {
            "a": "interop",
            "b": topic,
            "c": "TBW102",
            "d": 4,
            "e": queue_id,
            "f": 0,
            "h": 0,
            "j": 0,
            "k": "false",
        }
        fields |= {"g": time.time_ns() // 1_000_000, "i": properties.decode(), "m": "true" if batch else "false"}
        return self.ask(SEND_BATCH_MESSAGE if batch else SEND_MESSAGE_V2, fields, body)

    def bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        """First and next offset of a queue."""
        where = {"topic": topic, "queueId": queue_id}
        low, high = self.ask(GET_MIN_OFFSET, where), self.ask(GET_MAX_OFFSET, where)
        return int(low.fields["offset"]), int(high.fields["offset"])

    def pull_all(self, topic: str, queue_id: int) -> Iterator[Record]:
        """Every message of a queue."""
        offset, end = self.bounds(topic, queue_id)
        fields = {"consumerGroup": "interop", "topic": topic, "queueId": queue_id, "maxMsgNums": 32, "commitOffset": 0}
        fields |= {"sysFlag": _SUBSCRIPTION_SUPPLIED, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*"}
        while offset < end:
            answer = self.call(PULL_MESSAGE, {**fields, "queueOffset": offset})
            if answer.code not in (SUCCESS, PULL_RETRY_IMMEDIATELY, PULL_OFFSET_MOVED):
                raise Refused(f"pull {topic}/{queue_id} at {offset}: code {answer.code}, {answer.remark}")
            following = int(answer.fields["nextBeginOffset"])
            if following <= offset:
                raise Refused(f"pull {topic}/{queue_id} at {offset} < {end}: code {answer.code}, on to {following}")
            offset = following
            yield from decode_records(answer.body)

    def view(self, physical_offset: int) -> bytes:
        """One record, as it lies in the log."""
        return self.ask(VIEW_MESSAGE_BY_ID, {"offset": physical_offset}).body

    def query(self, topic: str, key: str, *, unique: bool = False) -> list[Record]:
        """Messages by key; hits of other keys with the same hash are among them."""
        fields = {"topic": topic, "key": key, "maxNum": 64, "beginTimestamp": 0, "endTimestamp": _FOREVER}
        answer = self.call(QUERY_MESSAGE, {**fields, "_UNIQUE_KEY_QUERY": "true" if unique else "false"})
        if answer.code == QUERY_NOT_FOUND:
            return []
        if answer.code != SUCCESS:
            raise Refused(f"query {topic} {key}: code {answer.code}, {answer.remark}")
        return decode_records(answer.body)

    def topics(self) -> dict[str, dict[str, Any]]:
        """The topic table."""
        table = java_json.loads(self.ask(GET_ALL_TOPIC_CONFIG).body)["topicConfigTable"]
        assert isinstance(table, dict)
        return table

    def runtime(self) -> dict[str, str]:
        """What the broker says of itself."""
        table = java_json.loads(self.ask(GET_BROKER_RUNTIME_INFO).body)["table"]
        assert isinstance(table, dict)
        return table
