# The SendMessageResponse to one message that is stored, and as safe as it is to be.

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from tandemmq.store.fronts.compiled.protobuf cimport put_number, put_text

cdef extern from *:
    """
    /* The field 1, a Status with code OK, and the tag of the field 2. */
    static const unsigned char tandem_v2_ok[] = "\\x0a\\x08\\x08\\xa0\\x9c\\x01\\x12\\x02OK\\x12";
    """
    const unsigned char* tandem_v2_ok

# `key`: the message's id, of at most 128 bytes; `offset`: in its queue.
cdef inline bytes send_answer(const unsigned char* key, Py_ssize_t size, uint64_t offset):
    cdef unsigned char out[336]
    cdef unsigned char entry[304]
    cdef unsigned char* to = entry
    memcpy(to, tandem_v2_ok, 10)
    to = put_text(to + 10, 2 << 3 | 2, key, size)
    to = put_text(to, 3 << 3 | 2, key, size)
    if offset:
        to[0] = 4 << 3
        to = put_number(to + 1, offset)
    memcpy(out, tandem_v2_ok, 11)
    cdef unsigned char* after = put_number(&out[11], to - entry)
    memcpy(after, entry, to - entry)
    return PyBytes_FromStringAndSize(<char*>out, after - out + (to - entry))
