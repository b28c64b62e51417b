"""CONSUMER_SEND_MSG_BACK: a message that could not be consumed comes again after a while."""

from collections.abc import Callable

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.delivery.port import DeliveryPort
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.rules import CameBack


class Returns:
    """Takes messages back."""

    def __init__(self, delivery: DeliveryPort, is_topic: Callable[[str], bool], came_back: CameBack) -> None:
        self._delivery = delivery
        self._is_topic = is_topic
        self._came_back = came_back

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back}

    async def send_back(self, call: RemotingCall) -> Command:
        """Answered when the copy is as safe as a send: the consumer then counts the message as dealt with."""
        fields = call.fields
        group, offset = fields.text("group"), fields.int64("offset")
        level, most = fields.int32("delayLevel"), fields.int32_or("maxReconsumeTimes", 0)
        call.demand(use_group(group))
        await self._delivery.send_back(group, offset, level, most)
        topic = fields.text_or("originTopic", "")
        if self._is_topic(topic):
            self._came_back(topic, group)
        return call.ok()
