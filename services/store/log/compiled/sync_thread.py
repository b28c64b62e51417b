"""SyncThread: a thread that makes files durable and never takes the interpreter's lock.

It is told by an eventfd what to do, and tells by another that it is done: for a loop to listen to. Its twin is the pool
of `PoolSyncs`.
"""

import os

import cython
from cython.cimports.libc.errno import errno
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.posix.unistd import read


@cython.cclass
class SyncThread:
    """See the module. Its methods are called by one thread."""

    def __init__(self) -> None:
        """Start the thread. Raises OSError."""
        self._shared = tandem_sync_start()
        if self._shared == cython.NULL:
            code: cython.int = errno
            raise OSError(code, os.strerror(code))

    def __dealloc__(self) -> None:
        """End it."""
        self._end()

    @property
    def done(self) -> int:
        """The eventfd that says that files are durable, or cannot be made so."""
        return -1 if self._shared == cython.NULL else self._shared.done

    def begin(self, files: list[int]) -> None:
        """Sync files, in this order. They stay open until `ended` has said so; until then nothing else begins."""
        if self._busy or self._shared == cython.NULL:
            raise RuntimeError("a sync is under way, or the thread has ended")
        count: cython.int = len(files)
        i: cython.int
        if count > self._room:
            free(self._shared.files)
            self._room = 0
            self._shared.files = cython.cast(cython.p_int, malloc(count * cython.sizeof(cython.int)))
            if self._shared.files == cython.NULL:
                raise MemoryError
            self._room = count
        for i in range(count):
            self._shared.files[i] = files[i]
        self._shared.count = count
        self._shared.begun = 1
        self._busy = True
        tandem_sync_tell(self._shared.wake)

    def ended(self) -> int:
        """The number of the error with which what was begun has ended, 0 for none; -1: it has not ended yet."""
        told: cython.ulonglong = 0
        if self._shared == cython.NULL or read(self._shared.done, cython.address(told), 8) != 8:
            return -1
        self._busy = False
        return self._shared.error

    def close(self) -> int:
        """End the thread, after what it is at. Gives what `ended` would have; -1: there was nothing."""
        return self._end()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _end(self) -> cython.int:
        error: cython.int = -1
        if self._shared != cython.NULL:
            with cython.nogil:
                error = tandem_sync_end(self._shared)
            self._shared = cython.NULL
        if not self._busy:
            return -1
        self._busy = False
        return error
