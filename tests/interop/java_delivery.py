"""What a RocketMQ broker is asked of groups, delays and transactions, over the remoting protocol."""

import time
from collections import Counter
from typing import NamedTuple

from tandemmq.client import Record, decode_records
from tandemmq.store.format import properties as names
from tandemmq.store.format.message_id import decode_offset_id
from tests.interop.remoting import SUCCESS, Remoting

QUERY_CONSUMER_OFFSET, UPDATE_CONSUMER_OFFSET = 14, 15
CONSUMER_SEND_MSG_BACK, END_TRANSACTION = 36, 37
POP_MESSAGE, ACK_MESSAGE = 200050, 200051
_COMMIT, _ROLLBACK = 8, 12
_PATIENCE = 180.0


class Half(NamedTuple):
    """A half message, as its producer knows it."""

    group: str
    unique_key: str
    queue_offset: int
    physical_offset: int


class JavaDelivery:
    """A connection to a broker, as a producer and a consumer of it."""

    def __init__(self, remoting: Remoting, broker: str = "interop") -> None:
        self._remoting = remoting
        self._broker = broker

    def send(self, topic: str, body: str, queue: int = 0, **properties: str) -> int:
        """Stores a message; gives its log offset."""
        given = {names.UNIQ_KEY: f"J-{body}", **properties}
        answer = self._remoting.send(topic, queue, body.encode(), names.encode(given))
        return decode_offset_id(answer.fields["msgId"])[1]

    def send_half(self, topic: str, body: str, group: str) -> Half:
        """Stores a half message."""
        given = {names.UNIQ_KEY: f"J-{body}", names.TRAN_MSG: "true", "PGROUP": group}
        fields = self._remoting.send(topic, 0, body.encode(), names.encode(given)).fields
        return Half(group, f"J-{body}", int(fields["queueOffset"]), decode_offset_id(fields["msgId"])[1])

    def end(self, half: Half, *, commit: bool = True) -> None:
        """Ends a transaction."""
        fields = {
            "producerGroup": half.group,
            "tranStateTableOffset": half.queue_offset,
            "commitLogOffset": half.physical_offset,
            "commitOrRollback": _COMMIT if commit else _ROLLBACK,
            "fromTransactionCheck": "false",
            "msgId": half.unique_key,
            "transactionId": half.unique_key,
        }
        self._remoting.ask(END_TRANSACTION, fields)

    def send_back(self, group: str, topic: str, physical_offset: int, level: int) -> None:
        """A classic consumer sends a message back; to the dead letters with a level below 0."""
        fields = {"group": group, "offset": physical_offset, "delayLevel": level, "originTopic": topic}
        self._remoting.ask(CONSUMER_SEND_MSG_BACK, {**fields, "unitMode": "false", "maxReconsumeTimes": 16})

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Sets where a group stands in queue 0."""
        where = {"consumerGroup": group, "topic": topic, "queueId": 0}
        self._remoting.ask(UPDATE_CONSUMER_OFFSET, {**where, "commitOffset": offset})

    def position(self, group: str, topic: str) -> int:
        """Where a group stands in queue 0."""
        where = {"consumerGroup": group, "topic": topic, "queueId": 0}
        return int(self._remoting.ask(QUERY_CONSUMER_OFFSET, where).fields["offset"])

    def pop(self, group: str, topic: str, most: int, invisible_ms: int) -> list[tuple[Record, dict[str, object]]]:
        """Messages, each with what acknowledges it."""
        fields = {
            "consumerGroup": group, "topic": topic, "queueId": 0, "maxMsgNums": most, "invisibleTime": invisible_ms,
            "pollTime": 0, "bornTime": time.time_ns() // 1_000_000, "initMode": 0, "exp": "*", "expType": "TAG",
            "order": "false",
        }  # fmt: skip
        answer = self._remoting.call(POP_MESSAGE, fields)
        if answer.code != SUCCESS:
            return []
        given = answer.fields
        starts = dict(part.rsplit(" ", 1) for part in given["startOffsetInfo"].split(";"))
        popped = []
        for record in decode_records(answer.body):
            start = starts[f"0 {record.queue_id}"]
            extra = f"{start} {given['popTime']} {given['invisibleTime']} {given['reviveQid']} 0 {self._broker} "
            handle = {"consumerGroup": group, "topic": topic, "queueId": record.queue_id, "offset": record.queue_offset}
            popped.append((record, {**handle, "extraInfo": f"{extra}{record.queue_id} {record.queue_offset}"}))
        return popped

    def acknowledge(self, handle: dict[str, object]) -> None:
        """A message is dealt with."""
        self._remoting.ask(ACK_MESSAGE, handle)

    def bodies(self, topic: str, queue: int = 0) -> Counter[str]:
        """How often each body is in a queue."""
        return Counter(record.body.decode() for record in self._remoting.pull_all(topic, queue))

    def wait_for(self, topic: str, *bodies: str) -> Counter[str]:
        """Waits until all of them are in queue 0 of a topic; gives how often each is."""
        deadline = time.monotonic() + _PATIENCE
        while missing := set(bodies) - (found := self.bodies(topic)).keys():
            assert time.monotonic() < deadline, f"{missing} did not come to {topic}, but {dict(found)}"
            time.sleep(0.2)
        return found
