"""How fast an empty slave becomes like its master: from the first bytes that it has to the last queue entry."""

import time
from collections.abc import Callable, Mapping

from bench.model import Sample, Unavailable
from bench.process import ServerProcess

_LOOK_SECONDS = 0.02
_FIRST_SECONDS, _MOST_SECONDS = 60.0, 300.0


class Reached:
    """Watches a slave whose log is to end at `end`, and tells of the CPU time of `servers` meanwhile."""

    def __init__(self, end: int, messages: int, servers: Mapping[str, ServerProcess], begin: int = 0) -> None:
        """`begin`: where the log of the slave begins; `messages` lie from there to the end."""
        self._begin, self._end, self._messages = begin, end, messages
        self._servers = servers

    def measure(self, log_end: Callable[[], int], ready: Callable[[], bool]) -> Sample:
        """Look until the log is complete, then until `ready` says that everything is. Raises Unavailable."""
        ends: list[int] = []

        def begun() -> bool:
            ends.append(log_end())
            return ends[-1] > self._begin

        first, cpu = self._until(begun, _FIRST_SECONDS), self._cpu()
        at = ends[-1]
        logged = self._until(lambda: log_end() >= self._end, _MOST_SECONDS)
        done = self._until(ready, _MOST_SECONDS)
        used = {name: after - cpu[name] for name, after in self._cpu().items()}
        gigabytes = (self._end - at) / 1e9
        if gigabytes <= 0:
            raise Unavailable("the slave had everything at the first look: there is too little to measure")
        share = (self._end - at) / (self._end - self._begin)
        return {
            "gb_s": gigabytes / (done - first),
            "log_gb_s": gigabytes / (logged - first),
            "rate": self._messages * share / (done - first),
            "cpu_s_gb": sum(used.values()) / gigabytes,
            **{f"{name}_gb": seconds / gigabytes for name, seconds in used.items()},
        }

    def _cpu(self) -> dict[str, float]:
        return {name: server.cpu() for name, server in self._servers.items()}

    def _until(self, reached: Callable[[], bool], seconds: float) -> float:
        begun = time.perf_counter()
        while not reached():
            if time.perf_counter() - begun > seconds:
                raise Unavailable(f"the slave did not get on within {seconds:.0f} s")
            time.sleep(_LOOK_SECONDS)
        return time.perf_counter()
