from tandemmq.store.fronts.compiled.call_times cimport CompiledCallTimes

cdef class CompiledHeldCalls:
    cdef CompiledCallTimes _times, _polling
    cdef object _called
