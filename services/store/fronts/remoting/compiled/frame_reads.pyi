"""What Python sees of frame_reads.py."""

from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.store.fronts.compiled.call_times import CompiledCallTimes
from tandemmq.store.fronts.remoting.compiled.pull_frames import CompiledPullFrames
from tandemmq.store.fronts.remoting.direct_send import DirectFrames
from tandemmq.store.fronts.remoting.identity import RemotingIdentity

class CompiledFrameReads:
    def __init__(
        self,
        connection: RemotingConnection,
        direct: DirectFrames,
        identity: RemotingIdentity,
        times: CompiledCallTimes,
        pulls: CompiledPullFrames | None = None,
    ) -> None: ...
    def data_received(self, data: bytes) -> None: ...
