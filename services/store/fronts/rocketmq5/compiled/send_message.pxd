from libc.stdint cimport int64_t

from tandemmq.store.broker.compiled.sender cimport CompiledSender
from tandemmq.store.fronts.rocketmq5.compiled.send_request cimport CompiledSendRequest

cdef class CompiledSendMessage(CompiledSendRequest):
    cdef CompiledSender _sender
    cdef readonly int64_t end_offset
    cdef readonly bint waits
    cdef readonly int64_t taken
