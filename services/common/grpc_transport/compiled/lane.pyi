"""What Python sees of lane.py."""

from collections.abc import Callable
from typing import Any

from tandemmq.common.grpc_transport.compiled.head_scan import HeadScan
from tandemmq.common.grpc_transport.http2.budget import Budget
from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.rpc.call_head import CallHead
from tandemmq.common.grpc_transport.rpc.metadata import Metadatum

class LaneCall:
    def peer(self) -> str: ...
    def invocation_metadata(self) -> tuple[Metadatum, ...]: ...
    def answer_later(self, answer: bytes) -> None: ...
    def become(self, call: Any) -> None: ...

class Lane:
    taken: int
    def __init__(
        self,
        connection: Connection,
        scan: HeadScan,
        peer: str,
        budget: Budget,
        flush: Callable[[], None],
        flush_at: int,
        view: Callable[[bytes], CallHead],
        conclude: Callable[[bytes, int, int, int, bytes, LaneCall, object, Exception | None], None],
    ) -> None: ...
    def take(self, data: bytes, position: int) -> int: ...
