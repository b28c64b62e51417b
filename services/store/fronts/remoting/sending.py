"""Sends: SEND_MESSAGE, its form with letters, and batches. What comes in one turn of the loop is stored together."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import publish
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.versions import V5_0_0
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.delivery.delays.recalls import recall_handle
from tandemmq.store.format import properties as names
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.dispatch import Dispatch
from tandemmq.store.fronts.remoting.retry_sends import RetrySends, group_of_retry
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.sent_message import REGION, SendHeader, new_batch, new_message
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

STATUSES = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
_SAID = {"MSG_REGION": REGION, "TRACE_ON": "true"}
_OF_THE_MESSAGE = frozenset({Kind.INVALID, Kind.UNSUPPORTED})
"""Kinds that are told of a message as MESSAGE_ILLEGAL."""


class RemotingSending:
    """Takes messages of producers."""

    def __init__(self, broker: Broker, rules: RemotingRules, dispatch: Dispatch, retries: RetrySends) -> None:
        self._broker = broker
        self._rules = rules
        self._dispatch = dispatch
        self._retries = retries
        self._calls: list[RemotingCall] = []
        self._messages: list[NewMessage] = []

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.SEND_MESSAGE: self.send_long,
            RequestCode.SEND_MESSAGE_V2: self.send_short,
            RequestCode.SEND_BATCH_MESSAGE: self.send_batch,
        }

    @property
    def gathers(self) -> bool:
        """Whether messages wait for the end of this turn of the loop."""
        return bool(self._calls)

    # -- messages ---------------------------------------------------------------------------------------------------

    def send_long(self, call: RemotingCall) -> Coroutine[Any, Any, Command] | None:
        """SEND_MESSAGE: the header has long names."""
        call.said = _SAID
        return self._take(SendHeader.long(call.fields), call)

    def send_short(self, call: RemotingCall) -> Coroutine[Any, Any, Command] | None:
        """SEND_MESSAGE_V2: the header has letters."""
        call.said = _SAID
        return self._take(SendHeader.short(call.command), call)

    def _take(self, header: SendHeader, call: RemotingCall) -> Coroutine[Any, Any, Command] | None:
        """Keep the message until the end of the turn; a retry has its own way. Raises PermissionDenied."""
        check(header, call)
        message = new_message(header, call.body, call.peer, self._rules.cluster)
        if group_of_retry(header.topic) is not None:
            return self._send_retry(header, message, call)
        self._dispatch.defer(call)
        if not self._calls:
            asyncio.get_running_loop().call_soon(self._flush)
        self._calls.append(call)
        self._messages.append(message)
        return None

    async def _send_retry(self, header: SendHeader, message: NewMessage, call: RemotingCall) -> Command:
        try:
            return self.receipt(call, await self._retries.send(header, message))
        except TandemError as error:
            raise of_message(error) from error

    def _flush(self) -> None:
        """Store what came in this turn of the loop, from all clients."""
        calls, messages = self._calls, self._messages
        self._calls, self._messages = [], []

        def told(number: int, outcome: Receipt | TandemError) -> None:
            self._answer(calls[number], outcome)

        self._broker.submit(messages, told)

    def _answer(self, call: RemotingCall, outcome: Receipt | TandemError) -> None:
        """Tell a producer what became of its message."""
        if isinstance(outcome, TandemError):
            self._dispatch.fail(call, of_message(outcome))
        else:
            self._dispatch.finish(call, self.receipt(call, outcome))

    def receipt(self, call: RemotingCall, receipt: Receipt, *, reply: bool = False) -> Command:
        """The answer for a message that is stored; that for a `reply` names no transaction."""
        ready, place, status = receipt
        fields = {
            "msgId": encode_offset_id(self._rules.store_host, place.physical_offset),
            "queueId": str(ready.queue_id),
            "queueOffset": str(place.queue_offset),
            **_SAID,
        }
        if ready.transaction or (call.command.version >= V5_0_0 and not reply):
            fields["transactionId"] = ready.unique_key
        if ready.postponed is not None:
            handle = recall_handle(ready, self._rules.broker_name)
            if handle:
                fields["recallHandle"] = handle
        remark = None if status is PutStatus.PUT_OK else status.name
        return call.command.answer(STATUSES[status], fields, b"", remark)

    # -- batches ----------------------------------------------------------------------------------------------------

    async def send_batch(self, call: RemotingCall) -> Command:
        """SEND_BATCH_MESSAGE: the body has many messages, for one queue."""
        call.said = _SAID
        header = SendHeader.short(call.command)
        check(header, call)
        try:
            if header.topic.startswith(GROUP_TOPICS):
                raise RemotingRefusal(ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support {header.topic}")
            batch = new_batch(header, call.body, call.peer, self._rules.cluster)
            sent = await self._broker.append([], [batch], wait=header.waits)
            status = await self._broker.acknowledged(sent)
        except TandemError as error:
            raise of_message(error) from error
        stored = sent.batches[0]
        if stored.place is None:
            raise stored.failure or RemotingRefusal(ResponseCode.SYSTEM_ERROR, "The batch was not stored.")
        host = self._rules.store_host
        fields = {
            "msgId": ",".join(encode_offset_id(host, offset) for offset in stored.place.physical_offsets),
            "queueId": str(stored.batch.queue_id),
            "queueOffset": str(stored.place.first_queue_offset),
            **_SAID,
        }
        unique_key = header.given.get(names.UNIQ_KEY)
        if unique_key:
            fields["transactionId"] = unique_key
        return call.command.answer(STATUSES[status], fields)


def check(header: SendHeader, call: RemotingCall) -> None:
    """Whether the caller may send that. Raises PermissionDenied."""
    if call.principal is None:
        return
    group = group_of_retry(header.topic)
    call.demand(publish(header.topic) if group is None else use_group(group))


def of_message(error: TandemError) -> TandemError:
    """What is wrong with a message is told as such."""
    if error.kind in _OF_THE_MESSAGE and not isinstance(error, RemotingRefusal):
        return RemotingRefusal(ResponseCode.MESSAGE_ILLEGAL, error.message, remedy=error.remedy)
    return error
