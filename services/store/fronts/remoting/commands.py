"""What the broker tells classic clients of its own accord: the commands of delivery, as requests that are not answered.

CheckTransaction   CHECK_TRANSACTION_STATE: END_TRANSACTION will say it
GroupChanged       NOTIFY_CONSUMER_IDS_CHANGED: consumers share out the queues anew
OffsetsReset       RESET_CONSUMER_CLIENT_OFFSET, where a client takes it; else its next pulls are answered with the new
                   positions (see `resets`)
"""

import time
from dataclasses import replace

from tandemmq.common.wire.remoting import java_objects
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.java_objects import QueueKey
from tandemmq.store.delivery.members.sessions import CheckTransaction, Command, GroupChanged, OffsetsReset
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.format import properties as names
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.fronts.remoting.clients import Client
from tandemmq.store.fronts.remoting.resets import ClassicResets
from tandemmq.store.fronts.remoting.rules import RemotingRules


class Commands:
    """Tells them; each method as `Peer.ask`."""

    def __init__(self, resets: ClassicResets, rules: RemotingRules) -> None:
        self._resets = resets
        self._rules = rules

    def tell(self, client: Client, command: Command) -> bool:
        """Any of them."""
        if isinstance(command, GroupChanged):
            fields = {"consumerGroup": command.group}
            return client.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields)
        if isinstance(command, CheckTransaction):
            return self._check(client, command)
        if isinstance(command, OffsetsReset):
            return self._reset(client, command)
        return False  # what an operator asks goes as it came: see `relays`

    def _reset(self, client: Client, command: OffsetsReset) -> bool:
        set_now = self._resets.note(command.group, command.topic, command.queues)
        if not client.takes_resets(command.group):
            return client.takes_more
        fields = {
            "topic": command.topic,
            "group": command.group,
            "timestamp": str(time.time_ns() // 1_000_000),
            "isForce": "false",
        }
        table = {QueueKey(command.topic, self._rules.broker_name, queue): at for queue, at in set_now.items()}
        said: object = table
        if client.language == "CPP":  # RocketMQ: ResetOffsetBodyForC
            said = [{**queue.to_json(), "offset": at} for queue, at in table.items()]
        body = java_objects.dumps({"offsetTable": said})
        return client.notify(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)

    def _check(self, client: Client, command: CheckTransaction) -> bool:
        half = decode_record(command.record, verify=False)
        handle = TransactionHandle.parse(command.handle)
        fields = {
            "topic": command.topic,
            "tranStateTableOffset": str(handle.queue_offset),
            "commitLogOffset": str(handle.physical_offset),
            "msgId": half.unique_key or command.transaction_id,
            "transactionId": command.transaction_id,
            "offsetMsgId": encode_offset_id(self._rules.store_host, handle.physical_offset),
            "bname": self._rules.broker_name,
        }
        return client.notify(RequestCode.CHECK_TRANSACTION_STATE, fields, real_message(half).encode())


def real_message(half: Record) -> Record:
    """A half message as its producer sent it: with its own topic and queue."""
    given = half.properties
    topic = given.get(names.REAL_TOPIC, "").encode()
    queue = given.get(names.REAL_QID, "")
    if not topic or len(topic) > 127 or half.is_v2 or not queue.isdigit():
        return half
    return replace(half, topic_bytes=topic, queue_id=int(queue), size=half.size - len(half.topic_bytes) + len(topic))
