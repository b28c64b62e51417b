"""What Python sees of pull_frames.py."""

from tandemmq.store.fronts.compiled.call_times import CompiledCallTimes
from tandemmq.store.fronts.remoting.pulling import PlainPulls

class CompiledPullFrames:
    def __init__(self, parts: PlainPulls, pull_times: CompiledCallTimes, lite_times: CompiledCallTimes) -> None: ...
