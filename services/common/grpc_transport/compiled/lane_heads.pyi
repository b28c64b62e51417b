"""What Python sees of lane_heads.py."""

from collections.abc import Callable

from tandemmq.common.grpc_transport.compiled.head_scan import HeadScan
from tandemmq.common.grpc_transport.rpc.call_head import CallHead

class LaneHeads:
    def __init__(self, scan: HeadScan, view: Callable[[bytes], CallHead]) -> None: ...
