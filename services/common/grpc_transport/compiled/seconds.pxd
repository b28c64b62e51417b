from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef inline double seconds_now() noexcept:
    """By the clock of `time.perf_counter`, which only goes forward."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9
