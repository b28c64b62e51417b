"""Who is connected: consumers of a group with what they subscribe, producers."""

from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import dumps
from tandemmq.store.delivery.sessions import Member, Sessions
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_VIEW = Need(Action.VIEW)


class Connections:
    """Answers about them."""

    def __init__(self, sessions: Sessions, clients: RemotingClients) -> None:
        self._sessions = sessions
        self._clients = clients

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumers,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producers,
            RequestCode.GET_ALL_PRODUCER_INFO: self.all_producers,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self.subscription,
        }

    def consumers(self, call: RemotingCall) -> Command:
        """GET_CONSUMER_CONNECTION_LIST: the consumers of a group, of every protocol."""
        call.demand(_VIEW)
        group = call.fields.text("consumerGroup")
        members = self._sessions.consumers(group)
        if not members:
            raise RemotingRefusal(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
        said = self._clients.consumes(group)
        subscriptions = {} if said is None else {topic: one.given for topic, one in said.topics.items()}
        body: dict[str, Any] = {
            "connectionSet": list(map(_connection, members)),
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET" if said is None else said.from_where,
            "consumeType": "CONSUME_PASSIVELY" if said is None else said.consume_type,
            "messageModel": "CLUSTERING" if said is None else said.message_model,
            "subscriptionTable": subscriptions,
        }
        return call.ok(body=dumps(body))

    def subscription(self, call: RemotingCall) -> Command:
        """QUERY_SUBSCRIPTION_BY_CONSUMER: what the newest heartbeat of a group says of a topic, if anything."""
        call.demand(_VIEW)
        group, topic = call.fields.text("group"), call.fields.text("topic")
        said = self._clients.consumes(group)
        found = None if said is None else said.topics.get(topic)
        subscribed = {} if found is None else {"subscriptionData": found.given}
        return call.ok(body=dumps({"group": group, **subscribed, "topic": topic}))

    def producers(self, call: RemotingCall) -> Command:
        """GET_PRODUCER_CONNECTION_LIST."""
        call.demand(_VIEW)
        group = call.fields.text("producerGroup")
        members = self._sessions.producers(group)
        if not members:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
        return call.ok(body=dumps({"connectionSet": list(map(_connection, members))}))

    def all_producers(self, call: RemotingCall) -> Command:
        """GET_ALL_PRODUCER_INFO."""
        call.demand(_VIEW)
        groups = {group: self._sessions.producers(group) for group in self._sessions.groups()}
        data = {
            group: [
                {
                    "clientId": member.client_id,
                    "language": member.language,
                    "lastUpdateTimestamp": 0,
                    "remoteIP": f"/{member.address}",
                    "version": _version(member),
                }
                for member in members
            ]
            for group, members in groups.items()
            if members
        }
        return call.ok(body=dumps({"data": data}))


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
