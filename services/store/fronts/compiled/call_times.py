"""CompiledCallTimes: how long the calls of one method took that ended well. Its Python twin is `CallMetrics`."""

import cython

_MOST_BOUNDS: cython.int = 16


@cython.cclass
class CompiledCallTimes:
    """See the module."""

    def __init__(self, find: object) -> None:
        """`find` gives the Distribution in which they are counted; it is shown from then on."""
        self._find = find

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def count(self, seconds: cython.double, calls: cython.long) -> cython.int:
        """So many calls ended well, each after so long."""
        at: cython.int
        if self._times is None:
            self._find_times()
        milliseconds: cython.double = seconds * 1000
        for at in range(self._bound_count):
            if milliseconds <= self._bounds[at]:
                break
        else:
            at = self._bound_count
        self._counts[at] += calls
        self._times.sum += milliseconds * calls
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _find_times(self) -> cython.int:
        """Find where they are counted: with the first call, so that none are shown before."""
        times: object = self._find()
        at: cython.int
        if len(times.bounds) > _MOST_BOUNDS:
            raise ValueError("there is no room for so many bounds")
        self._bound_count = len(times.bounds)
        for at in range(self._bound_count):
            self._bounds[at] = times.bounds[at]
        self._counts = times.counts
        self._times = times
        return 1
