"""A classic client in a few lines: frames on a socket, answers by number, and what the broker asks of it."""

import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from tandemmq.client import Record, decode_records
from tandemmq.common.wire.remoting.codec import decode, encode
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY, Command
from tandemmq.common.wire.remoting.frames import RemotingFrameReader, Serialization
from tandemmq.common.wire.remoting.versions import V5_3_2
from tests.contract.remoting.encrypted_socket import EncryptedSocket

SECONDS = 60.0
"""Patience with the store."""

Sign = Callable[[Command], None]


@dataclass(frozen=True)
class Answer:
    """What the store answers, or asks."""

    code: int
    fields: Mapping[str, str]
    body: bytes
    remark: str
    serialization: Serialization
    command: Command

    @classmethod
    def of(cls, command: Command) -> "Answer":
        """What a frame says."""
        given = command.fields or {}
        return cls(command.code, given, bytes(command.body), command.remark or "", command.serialization, command)


class ClassicClient:
    """One connection."""

    def __init__(
        self,
        port: int,
        client_id: str = "client",
        *,
        version: int = V5_3_2,
        serialization: Serialization = Serialization.JSON,
        connection: socket.socket | EncryptedSocket | None = None,
        sign: Sign | None = None,
    ) -> None:
        self.client_id = client_id
        self.version = version
        self.asked: queue.Queue[Answer] = queue.Queue()
        """What the broker has sent on its own."""
        self.answer: Callable[[Command], Command | None] = lambda request: None
        """Answers what the broker asks; set by tests."""
        self.language = "JAVA"
        self._serialization = serialization
        self._sign = sign
        self._socket = connection or socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._sending = threading.Lock()  # a test's thread asks while the reading one answers the broker
        self._waiting: dict[int, Future[Answer]] = {}
        self._number = 0
        self._closed = False
        self._reading = threading.Thread(target=self._read, name="classic client", daemon=True)
        self._reading.start()

    # -- frames -------------------------------------------------------------------------------------------------------

    def begin(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> "Future[Answer]":
        """Asks; gives what the answer will be in."""
        self._number += 1
        future: Future[Answer] = Future()
        self._waiting[self._number] = future
        self._send(code, self._number, 0, fields, body)
        return future

    def call(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Answer:
        """Asks, and waits for the answer, whatever its code."""
        return self.begin(code, fields, body).result(SECONDS)

    def ask(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Answer:
        """As `call`; the answer must say SUCCESS."""
        answer = self.call(code, fields, body)
        assert answer.code == ResponseCode.SUCCESS, (answer.code, answer.remark)
        return answer

    def tell(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> None:
        """A request that is not answered."""
        self._number += 1
        self._send(code, self._number, ONE_WAY, fields, body)

    def _send(self, code: int, number: int, flag: int, fields: Mapping[str, object] | None, body: bytes) -> None:
        texts = None if fields is None else {name: _text(value) for name, value in fields.items()}
        command = Command(code, number, flag, texts, body, None, self.language, self.version, self._serialization)
        if self._sign is not None:
            self._sign(command)
        self._write(command)

    def _write(self, command: Command) -> None:
        with self._sending:
            self._socket.sendall(encode(command))

    def _read(self) -> None:
        reader = RemotingFrameReader()
        try:
            while data := self._socket.recv(1 << 16):
                for frame in reader.receive(data):
                    self._came(decode(frame))
        except OSError:
            pass
        self._closed = True
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(ConnectionError("the store has closed the connection"))

    def _came(self, command: Command) -> None:
        if command.is_response:
            self._waiting.pop(command.opaque).set_result(Answer.of(command))
            return
        answer = self.answer(command)
        if answer is not None:
            self._write(answer)
        self.asked.put(Answer.of(command))

    def next_asked(self, code: int) -> Answer:
        """The next request of the broker with this code; others before it are dropped."""
        deadline = time.monotonic() + SECONDS
        while True:
            found = self.asked.get(timeout=max(deadline - time.monotonic(), 0.01))
            if found.code == code:
                return found

    def wait_closed(self) -> None:
        """Until the store has closed the connection."""
        self._reading.join(SECONDS)
        assert self._closed

    def close(self) -> None:
        """Ends the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reading.join(SECONDS)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what clients ask ---------------------------------------------------------------------------------------------

    def send(
        self, topic: str, body: bytes = b"body", queue_id: int = 0, group: str = "producers", **given: str
    ) -> Answer:
        """SEND_MESSAGE_V2; `given` are properties."""
        return self.call(RequestCode.SEND_MESSAGE_V2, send_header(topic, queue_id, group, given), body)

    def pull(self, group: str, topic: str, offset: int, queue_id: int = 0, **more: Any) -> Answer:
        """PULL_MESSAGE, at once unless `suspend` says for how many ms it may be held."""
        return self.begin_pull(group, topic, offset, queue_id, **more).result(SECONDS)

    def begin_pull(
        self,
        group: str,
        topic: str,
        offset: int,
        queue_id: int = 0,
        *,
        suspend: int = 0,
        commit: int | None = None,
        expression: str | None = "*",
        kind: str = "TAG",
        most: int = 32,
    ) -> "Future[Answer]":
        """The same, without waiting."""
        flags = (2 if suspend else 0) | (1 if commit is not None else 0) | (4 if expression is not None else 0)
        fields: dict[str, object] = {"consumerGroup": group, "topic": topic, "queueId": queue_id, "queueOffset": offset}
        fields |= {"maxMsgNums": most, "sysFlag": flags, "commitOffset": commit or 0, "suspendTimeoutMillis": suspend}
        fields |= {"subVersion": 1, "expressionType": kind}
        if expression is not None:
            fields["subscription"] = expression
        return self.begin(RequestCode.PULL_MESSAGE, fields)

    def heartbeat(
        self, *, consumes: Mapping[str, Mapping[str, str]] | None = None, produces: tuple[str, ...] = (), **more: object
    ) -> Answer:
        """HEART_BEAT: groups with their topics and tag expressions."""
        consumers = [
            {
                "groupName": group,
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
                "subscriptionDataSet": [
                    {"topic": topic, "subString": expression, "subVersion": 1, "expressionType": "TAG"}
                    for topic, expression in topics.items()
                ],
                **more,
            }
            for group, topics in (consumes or {}).items()
        ]
        body = {"clientID": self.client_id, "consumerDataSet": consumers}
        body["producerDataSet"] = [{"groupName": group} for group in produces]
        return self.ask(RequestCode.HEART_BEAT, {}, json.dumps(body).encode())

    def position(self, group: str, topic: str, queue_id: int = 0) -> Answer:
        """QUERY_CONSUMER_OFFSET."""
        fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id}
        return self.call(RequestCode.QUERY_CONSUMER_OFFSET, fields)

    def commit(self, group: str, topic: str, offset: int, queue_id: int = 0) -> Answer:
        """UPDATE_CONSUMER_OFFSET."""
        fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id, "commitOffset": offset}
        return self.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields)


def send_header(topic: str, queue_id: int, group: str, given: Mapping[str, str]) -> dict[str, object]:
    """A send's header, with letters."""
    properties = "".join(f"{name}\1{value}\2" for name, value in given.items())
    header: dict[str, object] = {"a": group, "b": topic, "c": "TBW102", "d": 4, "e": queue_id, "f": 0, "h": 0, "j": 0}
    return header | {"g": time.time_ns() // 1_000_000, "i": properties, "k": "false", "m": "false"}


def records(answer: Answer) -> list[Record]:
    """The messages of a pull's answer."""
    assert answer.code == ResponseCode.SUCCESS, (answer.code, answer.remark)
    return decode_records(answer.body)


def document(answer: Answer) -> dict[str, Any]:
    """A body that is JSON."""
    found: dict[str, Any] = json.loads(answer.body)
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
