"""Recalls: taking back a message that waits for its time (RECALL_MESSAGE)."""

from tandemmq.common.access.needs import publish
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall


class Recalling:
    """Answers them."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {RequestCode.RECALL_MESSAGE: self.recall}

    async def recall(self, call: RemotingCall) -> Command:
        """RECALL_MESSAGE: the message of a handle, which its send was answered with, is not delivered."""
        topic = call.fields.text("topic")
        call.demand(publish(topic))
        unique_key = await self._delivery.recall(topic, call.fields.text("recallHandle"), call.peer)
        return call.ok({"msgId": unique_key})
