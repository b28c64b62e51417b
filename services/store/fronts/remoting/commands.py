"""What the broker tells classic clients of its own accord: the commands of delivery, as requests that are not answered.

CheckTransaction   CHECK_TRANSACTION_STATE: END_TRANSACTION will say it
GroupChanged       NOTIFY_CONSUMER_IDS_CHANGED: consumers share out the queues anew
OffsetsReset       their next pulls are answered with the new positions (see `resets`)
"""

from dataclasses import replace

from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.store.delivery.sessions import CheckTransaction, Command, GroupChanged, OffsetsReset
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
            self._resets.note(command.group, command.topic)
            return client.takes_more
        return False  # what an operator asks goes as it came: see `relays`

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
