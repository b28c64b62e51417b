"""EndTransaction and RecallMessage: what a producer says of a message that is not delivered yet."""

from collections.abc import Callable

from tandemmq.common.access.needs import publish
from tandemmq.common.errors import Kind, TandemError
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.port import ConsumingPort, Ending
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.statuses import OK, ProtocolRefusal

_ENDINGS = {
    calls_pb2.COMMIT: Ending.COMMIT,
    calls_pb2.ROLLBACK: Ending.ROLLBACK,
    calls_pb2.TRANSACTION_RESOLUTION_UNSPECIFIED: Ending.UNKNOWN,
}
_NO_HANDLE = (Kind.BAD_HANDLE, Kind.HANDLE_EXPIRED)


class TransactionCalls:
    """Ends transactions, and takes messages back."""

    def __init__(self, delivery: Callable[[str], ConsumingPort]) -> None:
        self._delivery = delivery

    async def end(self, request: calls_pb2.EndTransactionRequest, call: FrontCall) -> calls_pb2.EndTransactionResponse:
        """A transaction ends. Raises ProtocolRefusal, PermissionDenied, UnknownTransaction, TransactionEnded."""
        topic = call.topic(request.topic)
        call.demand(publish(topic))
        ending = _ENDINGS.get(request.resolution)
        if ending is None:
            raise ProtocolRefusal(pb.BAD_REQUEST, f"A transaction cannot end with {int(request.resolution)}.")
        if not request.transaction_id.strip():
            raise ProtocolRefusal(pb.INVALID_TRANSACTION_ID, "The transaction id is blank.")
        checked = request.source == calls_pb2.SOURCE_SERVER_CHECK
        try:
            await self._delivery(call.user).end_transaction(topic, request.transaction_id, ending, checked=checked)
        except TandemError as error:
            if error.kind not in _NO_HANDLE:
                raise
            raise ProtocolRefusal(pb.INVALID_TRANSACTION_ID, error.message, remedy=error.remedy) from error
        return calls_pb2.EndTransactionResponse(status=OK)

    async def recall(self, request: calls_pb2.RecallMessageRequest, call: FrontCall) -> calls_pb2.RecallMessageResponse:
        """A message that waits for its time is taken back. Raises ProtocolRefusal, PermissionDenied."""
        topic = call.topic(request.topic)
        call.demand(publish(topic))
        try:
            unique_key = await self._delivery(call.user).recall(topic, request.recall_handle, call.caller.peer)
        except TandemError as error:
            if error.kind not in _NO_HANDLE:
                raise
            raise ProtocolRefusal(pb.BAD_REQUEST, error.message, remedy=error.remedy) from error
        return calls_pb2.RecallMessageResponse(status=OK, message_id=unique_key)
