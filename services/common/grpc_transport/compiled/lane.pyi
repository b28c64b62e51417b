"""What Python sees of lane.py."""

from collections.abc import Callable
from typing import Any

import grpc

from tandemmq.common.grpc_transport.compiled.head_scan import HeadScan
from tandemmq.common.grpc_transport.http2.budget import Account
from tandemmq.common.grpc_transport.rpc.call_head import CallHead
from tandemmq.common.grpc_transport.rpc.metadata import Metadatum

class LaneCall:
    stream_id: int
    received: int
    send_window: int
    def peer(self) -> str: ...
    @property
    def account(self) -> Any: ...
    def invocation_metadata(self) -> tuple[Metadatum, ...]: ...
    def answer_later(self, answer: bytes) -> None: ...
    def hand_over(self, message: bytes) -> None: ...
    def end_with(self, code: grpc.StatusCode, details: str, trailing: tuple[tuple[str, str], ...]) -> None: ...
    @property
    def gone(self) -> bool: ...
    @property
    def has_room(self) -> bool: ...
    def become(self, call: Any) -> None: ...
    def as_call(self) -> Any: ...

BegunCall = tuple[bytes, int, int]
"""Header block, stream, and what its window was opened by."""

class BegunCalls:
    @property
    def taken(self) -> int: ...

class Lane:
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
        leave: Callable[[list[BegunCall]], None],
        conclude: Callable[[BegunCall, list[BegunCall], int, bytes, LaneCall, object, Exception | None], None],
        resume: Callable[[bytes, LaneCall, int, float | None], None],
    ) -> None: ...
    def open(self, peer: str, account: Account) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def take(self, data: bytes, position: int) -> int: ...
