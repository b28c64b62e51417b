"""Replies: a consumer answers a request; the answer goes to the requester's connection, and into the reply topic."""

import time
from collections.abc import Callable

from tandemmq.common.access.needs import publish
from tandemmq.common.errors import TandemError
from tandemmq.common.topic_names import AUTO_CREATED
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.format import properties as names
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.relays import ask
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.sent_message import SendHeader, new_message

REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"


class Replies:
    """Takes them."""

    def __init__(
        self,
        broker: Broker,
        clients: RemotingClients,
        rules: RemotingRules,
        receipt: Callable[[RemotingCall, Receipt], Command],
    ) -> None:
        """`receipt` makes the answer for a message that is stored."""
        self._broker = broker
        self._clients = clients
        self._rules = rules
        self._receipt = receipt

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {RequestCode.SEND_REPLY_MESSAGE: self.long, RequestCode.SEND_REPLY_MESSAGE_V2: self.short}

    async def long(self, call: RemotingCall) -> Command:
        """SEND_REPLY_MESSAGE: the header has long names."""
        return await self._reply(SendHeader.long(call.fields), call)

    async def short(self, call: RemotingCall) -> Command:
        """SEND_REPLY_MESSAGE_V2: the header has letters."""
        return await self._reply(SendHeader.short(call.command), call)

    async def _reply(self, header: SendHeader, call: RemotingCall) -> Command:
        """Push it, then store it; the replier hears where the requester could not be told."""
        call.demand(publish(header.topic))
        message = new_message(header, call.body, call.peer, self._rules.cluster)
        given = dict(message.properties)
        if header.topic == self._rules.reply_topic and self._broker.topics.get(header.topic) is None:
            await self._broker.sender.create({header.topic: TopicConfig(header.topic, 1, 1)})
        failure = await self._push(header, given, call)
        receipt = await self._broker.send(message)
        answer = self._receipt(call, receipt)
        if failure is not None:
            answer.code, answer.remark = ResponseCode.SYSTEM_ERROR, failure
        return answer

    async def _push(self, header: SendHeader, given: dict[str, str], call: RemotingCall) -> str | None:
        """PUSH_REPLY_MESSAGE_TO_CLIENT; gives why it did not arrive."""
        requester = given.get(REPLY_TO_CLIENT, "")
        client = self._clients.requester(requester) if requester else None
        if client is None:
            return f"push reply message fail, channel of <{requester}> not found."
        given[PUSH_REPLY_TIME] = str(now := int(time.time() * 1000))
        given.pop(names.WAIT, None)
        fields = {
            "producerGroup": header.group,
            "topic": header.topic,
            "defaultTopic": header.default_topic or AUTO_CREATED,
            "defaultTopicQueueNums": str(header.default_queues),
            "queueId": str(header.queue_id),
            "sysFlag": str(header.sys_flag),
            "bornTimestamp": str(header.born_timestamp),
            "flag": str(header.flag),
            "properties": names.encode(given).decode(),
            "reconsumeTimes": str(header.reconsume_times),
            "unitMode": str(header.unit_mode).lower(),
            "bornHost": str(call.peer),
            "storeHost": str(self._rules.store_host),
            "storeTimestamp": str(now),
        }
        try:
            answer = await ask(client, RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, fields, call.command.body)
        except TandemError as error:
            return f"push reply message to {requester} fail. {error.message}"
        if answer.code != ResponseCode.SUCCESS:
            return f"push reply message to {requester}fail. {answer.remark or ''}"
        return None
