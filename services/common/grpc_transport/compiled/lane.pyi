"""What Python sees of lane.py."""

from collections.abc import Callable
from typing import Any

from tandemmq.common.grpc_transport.compiled.begun_calls import BegunCalls
from tandemmq.common.grpc_transport.compiled.head_scan import HeadScan
from tandemmq.common.grpc_transport.compiled.lane_call import KeptCalls
from tandemmq.common.grpc_transport.compiled.reactor import Reactor
from tandemmq.common.grpc_transport.http2.budget import Account
from tandemmq.common.grpc_transport.rpc.call_head import CallHead

class Lane(KeptCalls):
    taken: int
    @property
    def unread(self) -> bytes: ...
    def __init__(
        self,
        protocol: Any,
        scan: HeadScan,
        begun: BegunCalls,
        held: object,
        flush_at: int,
        view: Callable[[bytes], CallHead],
        pythons: tuple[Callable[..., None], ...],
    ) -> None: ...
    def open(self, peer: str, account: Account, reactor: Reactor | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def lost(self) -> None: ...
    def take(self, data: bytes, position: int) -> int: ...
