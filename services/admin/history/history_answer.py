"""GetHistory of the contract: a node, topic or group of the hour's history."""

from tandemmq.admin.errors import BadAdminRequest
from tandemmq.admin.history.history import HourHistory
from tandemmq.admin.v1 import admin_pb2


def tell_history(history: HourHistory, request: admin_pb2.GetHistoryRequest) -> admin_pb2.GetHistoryResponse:
    """See admin.proto. Raises BadAdminRequest."""
    kind = request.WhichOneof("subject")
    if kind is None:
        raise BadAdminRequest("nothing is asked for", remedy="set one of node, topic and group")
    return admin_pb2.GetHistoryResponse(
        series=(
            admin_pb2.HistorySeries(measure=measure, values=values)
            for measure, values in history.of(kind, getattr(request, kind))
        ),
        last_ms=int(history.last * 1000),
        step_ms=int(history.step * 1000),
        left_out=history.left_out,
    )
