"""END_TRANSACTION: how a transaction has ended; one-way, so that a producer never hears what became of it."""

from tandemmq.common.access.needs import publish
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.delivery.port import DeliveryPort, Ending
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_ENDINGS = {0: Ending.UNKNOWN, 8: Ending.COMMIT, 12: Ending.ROLLBACK}


class TransactionEnds:
    """Ends them."""

    def __init__(self, delivery: DeliveryPort) -> None:
        self._delivery = delivery

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {RequestCode.END_TRANSACTION: self.end}

    async def end(self, call: RemotingCall) -> Command:
        """END_TRANSACTION, of its producer's own accord or as the answer to a check."""
        fields = call.fields
        ending = _ENDINGS.get(fields.int32("commitOrRollback"))
        if ending is None:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, "commitOrRollback is none of 0, 8 and 12.")
        topic = fields.text_or("topic", "")
        if topic:
            call.demand(publish(topic))
        handle = TransactionHandle(
            fields.text_or("transactionId", "") or fields.text("msgId"),
            fields.int64("tranStateTableOffset"),
            fields.int64("commitLogOffset"),
        )
        checked = bool(fields.flag_or("fromTransactionCheck", False))
        await self._delivery.end_transaction(fields.text("producerGroup"), str(handle), ending, checked=checked)
        return call.ok()
