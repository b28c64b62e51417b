"""Pop: consumers that are given messages with a receipt, and acknowledge each (POP_MESSAGE and its family).

Java clients make the receipt of a message themselves, of numbers in the answer's header, unless it has a property
POP_CK already. So each message is given that property, in Java's form with our handle after it::

    offset popTime invisibleTime reviveQueue mark brokerName queue offset handle

Peeking, notifications and acknowledgements in bitmaps are a proxy's business, and refused.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import subscribe
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.errors import BadHandle
from tandemmq.store.delivery.port import ANY, GivenMessage, Subscription, Wish
from tandemmq.store.format import properties as names
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.heartbeats import filter_kind
from tandemmq.store.fronts.remoting.pop_header import PopHeader, ReceiptHeader
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

MOST_MESSAGES = 32
MOST_POLL_MS = 60_000
_HANDLE_FIELD = 8
"""Of the receipt's fields, counted from 0."""


class Popping:
    """Gives messages out, and takes their acknowledgements."""

    def __init__(self, delivery: Delivery, rules: RemotingRules) -> None:
        self._delivery = delivery
        self._rules = rules

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.POP_MESSAGE: self.pop,
            RequestCode.ACK_MESSAGE: self.acknowledge,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: self.change,
        }

    async def pop(self, call: RemotingCall) -> Command:
        """POP_MESSAGE: messages, now or when there are some."""
        header = PopHeader.of(call.command)
        wish = self._wish(header)
        call.demand(use_group(wish.group), subscribe(wish.topic))
        if header.order:
            self._check_order(wish.group)

        async def room(_: int) -> None:
            await call.connection.drained()

        batch = await self._delivery.receive(wish, room)
        if call.connection.closed:
            batch.release()
        else:
            batch.sent(lambda: not call.connection.closed)
        messages = batch.messages
        now = int(time.time() * 1000)
        said = {"popTime": now, "invisibleTime": wish.invisible_ms, "reviveQid": 0, "restNum": 0}
        if not messages:
            return call.reply(ResponseCode.POLLING_TIMEOUT, "no message after polling", said)
        given = [self._given(one, now) for one in messages]
        return call.reply(ResponseCode.SUCCESS, "FOUND", said | _offsets(messages), b"".join(given))

    def _wish(self, header: PopHeader) -> Wish:
        """What is asked for. Raises ProtocolRefusal."""
        return Wish(
            group=header.group,
            topic=header.topic,
            queue=max(header.queue_id, ANY),
            subscription=Subscription(header.expression, filter_kind(header.kind)),
            most=min(max(header.most, 1), MOST_MESSAGES),
            most_bytes=self._rules.most_bytes,
            invisible_ms=header.invisible_ms,
            wait_ms=min(max(header.poll_ms, 0), MOST_POLL_MS),
        )

    def _check_order(self, name: str) -> None:
        group = self._delivery.groups.get(name)
        if group is None or not group.consume_message_orderly:
            raise RemotingRefusal(
                ResponseCode.SYSTEM_ERROR,
                f"Group {name} is not one that consumes in order.",
                remedy="Set consumeMessageOrderly for the group, or leave the rebalance to the client.",
            )

    def _given(self, given: GivenMessage, now: int) -> bytes:
        """The record as the consumer gets it: with its receipt, and the times it was consumed before."""
        record = decode_record(given.record, verify=False)
        offset = record.queue_offset
        start = f"{offset} {now} {given.invisible_ms} 0 0 {self._rules.broker_name} {record.queue_id} {offset}"
        own = names.append(
            names.remove(record.properties_bytes, names.POP_CK), {names.POP_CK: f"{start} {given.handle}"}
        )
        size = record.size - len(record.properties_bytes) + len(own)
        return replace(record, properties_bytes=own, size=size, reconsume_times=given.number - 1).encode()

    async def acknowledge(self, call: RemotingCall) -> Command:
        """ACK_MESSAGE: a message is dealt with."""
        header = ReceiptHeader.of(call.command)
        call.demand(use_group(header.group))
        (outcome,) = await self._delivery.acknowledge(header.group, header.topic, [_handle(header.receipt)])
        if outcome.error is not None:
            raise outcome.error
        return call.ok()

    async def change(self, call: RemotingCall) -> Command:
        """CHANGE_MESSAGE_INVISIBLETIME: a message comes again after that time."""
        header = ReceiptHeader.of(call.command)
        invisible = header.invisible_ms
        call.demand(use_group(header.group))
        await self._delivery.change_invisible(header.group, header.topic, _handle(header.receipt), invisible)
        return call.ok({"popTime": int(time.time() * 1000), "invisibleTime": invisible, "reviveQid": 0})


def _handle(receipt: str) -> str:
    """Our handle in the receipt. Raises BadHandle."""
    parts = receipt.split(" ")
    if len(parts) <= _HANDLE_FIELD:
        raise BadHandle("The receipt is none of this broker's.", remedy="Give back the POP_CK of the message.")
    return parts[_HANDLE_FIELD]


def _offsets(messages: Sequence[GivenMessage]) -> dict[str, object]:
    """Which offsets of which queues were given (RocketMQ: ``ExtraInfoUtil``)."""
    queues: dict[int, list[int]] = {}
    for one in messages:
        record = decode_record(one.record, verify=False)
        queues.setdefault(record.queue_id, []).append(record.queue_offset)
    return {
        "startOffsetInfo": ";".join(f"0 {queue} {min(offsets)}" for queue, offsets in queues.items()),
        "msgOffsetInfo": ";".join(f"0 {queue} {','.join(map(str, offsets))}" for queue, offsets in queues.items()),
    }
