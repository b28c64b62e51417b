"""Assignments: which queues a consumer is to have that leaves that to the broker, and whether it pulls or pops."""

from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.access.needs import group as use_group
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker
from tandemmq.store.fronts.remoting import json_bodies
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

POP, PULL = "POP", "PULL"
_MOST_MODES = 10_000


class Assignments:
    """Answers them. The modes are not kept over a restart: then groups pull, which gives them the same messages."""

    def __init__(self, broker: Broker, clients: RemotingClients, broker_name: str) -> None:
        self._broker = broker
        self._clients = clients
        self._broker_name = broker_name
        self._popping: set[tuple[str, str]] = set()

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.QUERY_ASSIGNMENT: self.assigned,
            RequestCode.SET_MESSAGE_REQUEST_MODE: self.set_mode,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self.modes,
        }

    def set_mode(self, call: RemotingCall) -> Command:
        """SET_MESSAGE_REQUEST_MODE: whether a group pulls or pops a topic."""
        call.demand(Need(Action.MANAGE))
        said = json_bodies.read(call.body)
        key = json_bodies.text(said, "consumerGroup"), json_bodies.text(said, "topic")
        mode = json_bodies.text(said, "mode")
        if mode not in (POP, PULL):
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The mode {mode[:40]} is neither POP nor PULL.")
        if len(self._popping) >= _MOST_MODES and key not in self._popping:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"{_MOST_MODES:,} modes are set: no more are kept.")
        (self._popping.add if mode == POP else self._popping.discard)(key)
        return call.ok()

    def modes(self, call: RemotingCall) -> Command:
        """GET_ALL_MESSAGE_REQUEST_MODE: the groups that pop, by topic, for Java slaves."""
        call.demand(Need(Action.VIEW))
        table: dict[str, dict[str, object]] = {}
        for group, topic in sorted(self._popping):
            said = {"consumerGroup": group, "mode": POP, "popShareQueueNum": 0, "topic": topic}
            table.setdefault(topic, {})[group] = said
        return call.ok(None, json_bodies.write({"messageRequestModeMap": table}))

    def assigned(self, call: RemotingCall) -> Command:
        """QUERY_ASSIGNMENT: the queues of one consumer in a topic."""
        said = json_bodies.read(call.body)
        group, topic = json_bodies.text(said, "consumerGroup"), json_bodies.text(said, "topic")
        client_id = json_bodies.text(said, "clientId")
        call.demand(use_group(group))
        if (group, topic) in self._popping:
            return self._told(call, topic, [-1], POP)
        config = self._broker.topics.get(topic)
        queues = list(range(0 if config is None else config.read_queues))
        if json_bodies.text_or(said, "messageModel", "CLUSTERING") == "CLUSTERING":
            strategy = json_bodies.text_or(said, "strategyName", "AVG")
            queues = share(queues, self._clients.consumer_ids(group), client_id, by_circle=strategy == "AVG_BY_CIRCLE")
        return self._told(call, topic, queues, PULL)

    def _told(self, call: RemotingCall, topic: str, queues: list[int], mode: str) -> Command:
        assigned: list[dict[str, Any]] = [
            {"messageQueue": {"brokerName": self._broker_name, "queueId": queue, "topic": topic}, "mode": mode}
            for queue in queues
        ]
        return call.ok(None, json_bodies.write({"messageQueueAssignments": assigned}))


def share(queues: list[int], client_ids: list[str], client_id: str, *, by_circle: bool) -> list[int]:
    """One client's part of the queues; none for one that is not there (RocketMQ: ``AllocateMessageQueueAveragely``)."""
    if client_id not in client_ids:
        return []
    index, clients = client_ids.index(client_id), len(client_ids)
    if by_circle:
        return queues[index::clients]
    size, more = divmod(len(queues), clients)
    first = index * size + min(index, more)
    return queues[first : first + size + (index < more)]
