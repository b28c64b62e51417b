"""CONSUMER_SEND_MSG_BACK: a message that could not be consumed comes again after a while."""

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.delivery.port import DeliveryPort
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall


class Returns:
    """Takes messages back."""

    def __init__(self, delivery: DeliveryPort) -> None:
        self._delivery = delivery

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
        return call.ok()
