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
        if self._times is None:
            self._find_times()
        milliseconds: cython.double = seconds * 1000
        self._counts[self._bound_of(milliseconds)] += calls
        self._times.sum += milliseconds * calls
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def gather(self, seconds: cython.double) -> cython.int:
        """A call ended well after so long: counted with others of its turn, by `tell`."""
        if self._times is None:
            self._find_times()
        milliseconds: cython.double = seconds * 1000
        self._gathered[self._bound_of(milliseconds)] += 1
        self._gathered_ms += milliseconds
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def tell(self) -> cython.int:
        """Count what was gathered."""
        at: cython.int
        if self._times is None:
            return 0
        for at in range(self._bound_count + 1):
            if self._gathered[at]:
                self._counts[at] += self._gathered[at]
                self._gathered[at] = 0
        if self._gathered_ms:
            self._times.sum += self._gathered_ms
            self._gathered_ms = 0
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _bound_of(self, milliseconds: cython.double) -> cython.int:
        at: cython.int
        for at in range(self._bound_count):
            if milliseconds <= self._bounds[at]:
                return at
        return self._bound_count

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
