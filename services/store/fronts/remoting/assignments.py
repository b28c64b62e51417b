"""Assignments: which queues a consumer is to have that leaves that to the broker, and whether it pulls or pops."""

from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.access.needs import group as use_group
from tandemmq.common.topic_names import RETRY
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker
from tandemmq.store.fronts.remoting import json_bodies
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.request_modes import POP, PULL, RequestModes
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_MOST_INT = 0x7FFF_FFFF


class Assignments:
    """Answers them."""

    def __init__(self, broker: Broker, clients: RemotingClients, broker_name: str, modes: RequestModes) -> None:
        self._broker = broker
        self._clients = clients
        self._broker_name = broker_name
        self._modes = modes

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.QUERY_ASSIGNMENT: self.assigned,
            RequestCode.SET_MESSAGE_REQUEST_MODE: self.set_mode,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self.modes,
        }

    async def set_mode(self, call: RemotingCall) -> Command:
        """SET_MESSAGE_REQUEST_MODE: whether a group pulls or pops a topic; kept when this is answered."""
        call.demand(Need(Action.MANAGE))
        said = json_bodies.read(call.body)
        group, topic = json_bodies.text(said, "consumerGroup"), json_bodies.text(said, "topic")
        mode, share_queues = json_bodies.text(said, "mode"), said.get("popShareQueueNum", 0)
        if mode not in (POP, PULL):
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The mode {mode[:40]} is neither POP nor PULL.")
        if topic.startswith(RETRY):
            raise RemotingRefusal(ResponseCode.NO_PERMISSION, "A retry topic is always pulled: it has no mode.")
        if type(share_queues) is not int or abs(share_queues) > _MOST_INT:
            share_queues = 0  # a RocketMQ broker could not read the file
        kept = {"consumerGroup": group, "mode": mode, "popShareQueueNum": share_queues, "topic": topic}
        await self._modes.put(group, topic, kept)
        return call.ok()

    def modes(self, call: RemotingCall) -> Command:
        """GET_ALL_MESSAGE_REQUEST_MODE: the modes that were set, by topic and group, for Java slaves."""
        call.demand(Need(Action.VIEW))
        return call.ok(None, json_bodies.write(self._modes.document()))

    def assigned(self, call: RemotingCall) -> Command:
        """QUERY_ASSIGNMENT: the queues of one consumer in a topic."""
        said = json_bodies.read(call.body)
        group, topic = json_bodies.text(said, "consumerGroup"), json_bodies.text(said, "topic")
        client_id = json_bodies.text(said, "clientId")
        call.demand(use_group(group))
        if self._modes.pops(group, topic):
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
