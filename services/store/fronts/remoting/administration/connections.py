"""Who is connected: consumers of a group with what they subscribe, producers."""

from collections.abc import Callable, Sequence
from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.slices import Slices
from tandemmq.common.timers import Timers
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import dumps
from tandemmq.store.delivery.members.sessions import Member, Sessions
from tandemmq.store.fronts.remoting.administration.sliced import sliced
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_VIEW = Need(Action.VIEW)


class Connections:
    """Answers about them."""

    def __init__(self, sessions: Sessions, clients: RemotingClients, timers: Timers) -> None:
        self._sessions = sessions
        self._clients = clients
        self._timers = timers

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumers,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producers,
            RequestCode.GET_ALL_PRODUCER_INFO: self.all_producers,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self.subscription,
        }

    async def consumers(self, call: RemotingCall) -> Command:
        """GET_CONSUMER_CONNECTION_LIST: the consumers of a group, of every protocol."""
        call.demand(_VIEW)
        group = call.fields.text("consumerGroup")
        members = self._sessions.consumers(group)
        if not members:
            raise RemotingRefusal(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
        slices = Slices(self._timers)
        said = self._clients.consumes(group)
        subscriptions = {} if said is None else {topic: one.given for topic, one in said.topics.items()}
        body: dict[str, Any] = {
            "connectionSet": await _described(members, _connection, slices),
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET" if said is None else said.from_where,
            "consumeType": "CONSUME_PASSIVELY" if said is None else said.consume_type,
            "messageModel": "CLUSTERING" if said is None else said.message_model,
            "subscriptionTable": subscriptions,
        }
        return call.ok(body=await sliced(body, slices))

    def subscription(self, call: RemotingCall) -> Command:
        """QUERY_SUBSCRIPTION_BY_CONSUMER: what the newest heartbeat of a group says of a topic, if anything."""
        call.demand(_VIEW)
        group, topic = call.fields.text("group"), call.fields.text("topic")
        said = self._clients.consumes(group)
        found = None if said is None else said.topics.get(topic)
        subscribed = {} if found is None else {"subscriptionData": found.given}
        return call.ok(body=dumps({"group": group, **subscribed, "topic": topic}))

    async def producers(self, call: RemotingCall) -> Command:
        """GET_PRODUCER_CONNECTION_LIST."""
        call.demand(_VIEW)
        group = call.fields.text("producerGroup")
        members = self._sessions.producers(group)
        if not members:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
        slices = Slices(self._timers)
        return call.ok(body=await sliced({"connectionSet": await _described(members, _connection, slices)}, slices))

    async def all_producers(self, call: RemotingCall) -> Command:
        """GET_ALL_PRODUCER_INFO."""
        call.demand(_VIEW)
        slices, data = Slices(self._timers), {}
        for group in self._sessions.groups():
            if members := self._sessions.producers(group):
                data[group] = await _described(members, _producer, slices)
            await slices.pause()
        return call.ok(body=await sliced({"data": data}, slices))


async def _described(
    members: Sequence[Member], describe: Callable[[Member], dict[str, object]], slices: Slices
) -> list[dict[str, object]]:
    found = []
    for member in members:
        found.append(describe(member))
        await slices.pause()
    return found


def _producer(member: Member) -> dict[str, object]:
    return {
        "clientId": member.client_id,
        "language": member.language,
        "lastUpdateTimestamp": 0,
        "remoteIP": f"/{member.address}",
        "version": _version(member),
    }


def _connection(member: Member) -> dict[str, object]:
    return {
        "clientAddr": member.address,
        "clientId": member.client_id,
        "language": member.language or "OTHER",
        "version": _version(member),
    }


def _version(member: Member) -> int:
    """The ordinal that classic clients send; others have none."""
    return int(member.version) if member.version.isdigit() else 0
