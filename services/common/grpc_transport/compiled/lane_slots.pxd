# LaneSlots: where the objects around a lane have their slots (slots.pxd).

cdef class LaneSlots:
    # Of the connection,
    cdef Py_ssize_t received, granted, acknowledged, buffered, draining, failed, heads_size, heard, held
    cdef Py_ssize_t last_stream_id, receiving
    # of its sender,
    cdef Py_ssize_t block_prefix, congested, data_frames, initial_window, output, pending_bytes, ready, size, window
    # of its reader,
    cdef Py_ssize_t progressed, behind
    # of its protocol and its server,
    cdef Py_ssize_t paused, transport, written, writers, active
    # and of what the server holds, all in all, for a connection, and for whom it counts.
    cdef Py_ssize_t accounts, tight, total, used, waiting
    cdef Py_ssize_t account_closed, account_owner, account_used, owner_used
    cdef int _of_connection(self, object kind) except -1
    cdef int _of_sender(self, object kind) except -1
    cdef int _of_budget(self, object kind) except -1
