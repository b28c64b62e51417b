"""CallDeadlines: the deadlines of the calls that a lane holds, by one timer: most calls end long before theirs."""

import cython


@cython.cclass
class CallDeadlines:
    """Of one lane."""

    def __init__(self, loop: object, streams: dict) -> None:
        """`streams` of the connection: those whose `deadline` is a number are asked to `expire` when it has come."""
        self._loop, self._streams = loop, streams

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def watch(self, deadline: cython.double) -> cython.int:
        """Look for calls whose deadline has come at that time."""
        if self._over or (self._timer is not None and self._due <= deadline):
            return 0
        if self._timer is not None:
            self._timer.cancel()
        self._due = deadline
        self._timer = self._loop.call_at(deadline, self.look)
        return 1

    def look(self) -> None:
        """End the calls whose deadline has come; the next look is when that of another one does."""
        now: cython.double = self._loop.time()
        due: list = []
        self._timer = None
        for call in list(self._streams.values()):
            deadline: object = getattr(call, "deadline", None)
            if deadline is None:
                continue
            if deadline <= now:
                due.append((deadline, call.stream_id, call))
            else:
                self.watch(deadline)
        for _, _, call in sorted(due):
            if call.deadline is not None:  # the end of another one may have been its own
                call.expire()

    def close(self) -> None:
        """The connection is gone."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
