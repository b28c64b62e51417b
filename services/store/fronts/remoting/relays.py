"""Relays: what an operator's tool asks a consumer, by way of the broker; the consumer's answer goes back as it is."""

from collections.abc import Mapping

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.net.remoting.errors import PeerGone, PeerSilent, TooMuchAsked
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Body, Command
from tandemmq.common.wire.remoting.versions import V3_1_8_SNAPSHOT
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import BadRequest, MessageNotFound
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import Client, ConnectedClients
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

ANSWER_SECONDS = 10.0
"""A consumer has so long to answer."""

_SEEN_TO_BY_US = frozenset({"AccessKey", "Signature", "SecurityToken"})
"""Of the tool, not for the consumer."""


class Relays:
    """Asks consumers."""

    def __init__(self, broker: Broker, clients: ConnectedClients, broker_name: str) -> None:
        self._broker = broker
        self._clients = clients
        self._broker_name = broker_name

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume,
        }

    async def running(self, call: RemotingCall) -> Command:
        """GET_CONSUMER_RUNNING_INFO: what a consumer is doing."""
        call.demand(Need(Action.VIEW))
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
        return await self._asked(call, call.fields.text("clientId"), fields, record)

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


async def ask(client: Client, code: int, fields: Mapping[str, str], body: Body) -> Command:
    """A client's answer. Raises RemotingRefusal where none comes."""
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
