"""Relays: what an operator's tool asks a consumer, by way of the broker; the consumer's answer goes back as it is.

Clients of RocketMQ 5 are asked in their own words, and answered for in those of the tool, as RocketMQ's proxy does.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.documents import java_json
from tandemmq.common.errors import TandemError
from tandemmq.common.net.remoting.errors import PeerGone, PeerSilent, TooMuchAsked
from tandemmq.common.wire.remoting import java_objects
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Body, Command
from tandemmq.common.wire.remoting.versions import V3_0_7_SNAPSHOT, V3_1_8_SNAPSHOT
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import BadRequest, MessageNotFound
from tandemmq.store.delivery.errors import MemberSilent
from tandemmq.store.delivery.members.member_questions import MemberAnswer, MemberQuestion, ShowThreads, TryMessage
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import Client, RemotingClients
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

ANSWER_SECONDS = 10.0
"""A consumer has so long to answer."""

_SEEN_TO_BY_US = frozenset({"AccessKey", "Signature", "SecurityToken"})
"""Of the tool, not for the consumer."""


class Relays:
    """Asks consumers."""

    def __init__(self, broker: Broker, clients: RemotingClients, broker_name: str) -> None:
        self._broker = broker
        self._clients = clients
        self._broker_name = broker_name

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self.positions,
        }

    async def running(self, call: RemotingCall) -> Command:
        """GET_CONSUMER_RUNNING_INFO: what a consumer is doing."""
        call.demand(Need(Action.VIEW))
        answer = await self._asked_of_v5(call, ShowThreads)
        if answer is not None:
            info = {"jstack": answer.text, "mqTable": {}, "properties": {}, "statusTable": {}, "subscriptionSet": []}
            return call.command.answer(ResponseCode.SUCCESS, None, java_json.dumps(info))
        return await self._asked(call, call.fields.text("clientId"), call.command.fields or {}, b"")

    async def consume(self, call: RemotingCall) -> Command:
        """CONSUME_MESSAGE_DIRECTLY: a consumer is given one message more, and says what it made of it."""
        call.demand(Need(Action.MANAGE))
        fields = dict(call.command.fields or {})
        fields["brokerName"] = self._broker_name
        try:
            record = self._broker.view(call.fields.text("msgId"))
        except (BadRequest, MessageNotFound) as error:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, error.message) from error
        topic = decode_record(record, verify=False).topic
        answer = await self._asked_of_v5(call, partial(TryMessage, topic=topic, record=record))
        if answer is not None:
            done = "CR_SUCCESS" if answer.code == "OK" else "CR_LATER"
            result = {"autoCommit": True, "consumeResult": done, "order": False, "remark": answer.text or answer.code}
            return call.command.answer(ResponseCode.SUCCESS, None, java_json.dumps({**result, "spentTimeMills": 0}))
        return await self._asked(call, call.fields.text("clientId"), fields, record)

    async def positions(self, call: RemotingCall) -> Command:
        """INVOKE_BROKER_TO_GET_CONSUMER_STATUS: how far each consumer of a group says that it is in a topic.

        The field clientAddr is the id of the one that is meant; those that do not answer are left out.
        """
        call.demand(Need(Action.VIEW))
        group, one = call.fields.text("group"), call.fields.text_or("clientAddr", "")
        fields = {"topic": call.fields.text("topic"), "group": group}
        clients = self._clients.consumers(group)
        if not clients:
            said = f"No Any Consumer online in the consumer group: [{group}]"
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, said)
        asked = [client for client in clients if one in ("", client.client_id)]
        found = await asyncio.gather(*(_positions_of(client, fields) for client in asked))
        table = {client.client_id: said for client, said in zip(asked, found, strict=True) if said is not None}
        return call.ok(body=java_objects.dumps({"consumerTable": table, "messageQueueTable": {}}))

    async def _asked_of_v5(self, call: RemotingCall, make: Callable[[str], MemberQuestion]) -> MemberAnswer | None:
        """What a client of RocketMQ 5 answers; None where the consumer is none. Raises RemotingRefusal."""
        group, client_id = call.fields.text("consumerGroup"), call.fields.text("clientId")
        sessions = self._clients.sessions
        member = sessions.get(group, client_id)
        if member is None or self._clients.consumer(group, client_id) is not None:
            return None
        try:
            return await sessions.ask_member(group, client_id, make, ANSWER_SECONDS)
        except TandemError as error:
            silent = isinstance(error, MemberSilent)
            code = ResponseCode.CONSUME_MSG_TIMEOUT if silent else ResponseCode.SYSTEM_ERROR
            raise RemotingRefusal(code, f"consumer <{group}> <{client_id}>: {error.message}") from error

    async def _asked(self, call: RemotingCall, client_id: str, fields: Mapping[str, str], body: Body) -> Command:
        client = self._consumer(call.fields.text("consumerGroup"), client_id)
        told = {name: value for name, value in fields.items() if name not in _SEEN_TO_BY_US}
        answer = await ask(client, call.command.code, told, body)
        return call.command.answer(answer.code, answer.fields, answer.body, answer.remark)

    def _consumer(self, group: str, client_id: str) -> Client:
        client = self._clients.consumer(group, client_id)
        if client is None:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
        if client.version < V3_1_8_SNAPSHOT:
            raise RemotingRefusal(
                ResponseCode.SYSTEM_ERROR, f"The Consumer <{client_id}> Version is too low to be asked that"
            )
        return client


async def _positions_of(client: Client, fields: Mapping[str, str]) -> Mapping[java_objects.QueueKey, int] | None:
    """GET_CONSUMER_STATUS_FROM_CLIENT: offsets by queue; None where it says nothing of use."""
    if client.version < V3_0_7_SNAPSHOT:
        return None
    try:
        answer = await ask(client, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, fields, b"")
        return java_objects.queue_numbers(bytes(answer.body)) if answer.code == ResponseCode.SUCCESS else None
    except (RemotingRefusal, ValueError):
        return None


async def ask(client: Client, code: int, fields: Mapping[str, str], body: Body) -> Command:
    """A client's answer. Raises ProtocolRefusal where none comes."""
    try:
        return await client.connection.ask(Command(code, fields=fields, body=body), ANSWER_SECONDS)
    except PeerSilent as error:
        raise RemotingRefusal(
            ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer <{client.client_id}> did not answer in time: {error.message}"
        ) from error
    except (PeerGone, TooMuchAsked) as error:
        raise RemotingRefusal(
            ResponseCode.SYSTEM_ERROR, f"invoke consumer <{client.client_id}> failed: {error.message}"
        ) from error
