"""CompiledBatchCodec: from the bytes of a SendBatchRequest to those of its SendBatchResponse.

Its Python twin is `StoreServicer.SendBatch`. A request is taken that is one encoded batch, in the form that protobuf's
encoders write: each field once and in the order of its number, none that is unknown or seldom used. All else is left to
Python.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.tandemmq.store.broker.compiled.sender import CompiledSender
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import number, number_size, put_field, put_number, span
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, start

# Fields of SendBatchRequest: number << 3 | wire type.
_BATCHES: cython.int = 2 << 3 | 2
_NO_WAIT: cython.int = 3 << 3
# Of EncodedBatch.
_TOPIC: cython.int = 1 << 3 | 2
_QUEUE_ID: cython.int = 2 << 3
_MESSAGES: cython.int = 3 << 3 | 2
_COUNT: cython.int = 4 << 3
_SYS_FLAG: cython.int = 5 << 3
_BORN: cython.int = 6 << 3
# Of SendBatchResponse, and of its BatchReceipt.
_BATCH_RECEIPTS: cython.int = 2 << 3 | 2
_STATUS: cython.int = 1 << 3
_RECEIPT_QUEUE: cython.int = 2 << 3
_FIRST_OFFSET: cython.int = 3 << 3
_RECEIPT_COUNT: cython.int = 4 << 3
_STORE_TIMESTAMP: cython.int = 5 << 3
_MESSAGE_ID: cython.int = 6 << 3 | 2
_PHYSICAL_OFFSETS: cython.int = 7 << 3 | 2
_PUT_OK: cython.int = 1

_MOST: cython.int = 1024
"""Messages of a batch that is taken."""
_HEX: bytes = b"0123456789ABCDEF"


@cython.cclass
class CompiledBatchCodec:
    """See the module."""

    def __init__(self, sender: CompiledSender) -> None:
        self._sender = sender
        self._digits = sender.digits

    def answer(self, message: bytes, peer: bytes) -> bytes | None:
        """Store the batch of a request, and give the answer with PUT_OK; None: it is not taken, and nothing changed.

        `peer`: the packed address of the caller. `end_offset` is then what to wait for, and `waits` whether the request
        asks for that.
        """
        if not self._read(start(message), PyBytes_GET_SIZE(message), peer):
            return None
        self.taken += 1
        self.end_offset = self._sender.place.physical_offset + self._sender.place.size
        return self._receipt()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _read(self, data: cython.p_const_uchar, size: cython.Py_ssize_t, peer: bytes) -> cython.int:
        """Read a request, and send its batch: 1, or 0 where it is not taken."""
        batch: Span
        no_wait: uint64_t = 0
        if size < 2 or data[0] != _BATCHES:
            return 0
        at: cython.Py_ssize_t = span(data, 1, size, cython.address(batch))
        if at < 0:
            return 0
        if at < size and (
            data[at] != _NO_WAIT or number(data, at + 1, size, cython.address(no_wait)) != size or no_wait > 1
        ):
            return 0
        self._sender.begin()
        if not self._fields(data, batch.at, batch.at + batch.size):
            return 0
        self.waits = no_wait == 0
        self._batch.offsets = self._offsets
        self._batch.most = _MOST
        topic: cython.p_const_uchar = cython.address(data[self._topic.at])
        return self._sender.send_batch(topic, self._topic.size, cython.address(self._batch), peer)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _fields(self, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Read the fields of the batch; whether all of them are plain."""
        last: cython.int = 0
        messages: Span
        value: uint64_t = 0
        messages.at = at
        messages.size = 0
        self._topic = messages
        self._batch.wanted = 0
        while at < end:
            field: cython.int = data[at]
            at += 1
            if field >= 0x80 or field >> 3 <= last:
                return 0
            last = field >> 3
            if field == _TOPIC:
                at = span(data, at, end, cython.address(self._topic))
            elif field == _MESSAGES:
                at = span(data, at, end, cython.address(messages))
            else:
                at = number(data, at, end, cython.address(value))
                if at >= 0 and not self._take_number(field, value):
                    return 0
            if at < 0:
                return 0
        self._batch.data = cython.address(data[messages.at])
        self._batch.size = messages.size
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _take_number(self, field: cython.int, value: uint64_t) -> cython.int:
        """Take a field that is a number; whether it is plain."""
        if field == _QUEUE_ID:
            self._sender.plain.queue_id = cython.cast(cython.int, value)
        elif field == _COUNT:
            self._batch.wanted = cython.cast(cython.int, value)
            return self._batch.wanted >= 0
        elif field == _SYS_FLAG:
            self._sender.plain.sys_flag = cython.cast(cython.int, value)
        elif field == _BORN and not value >> 63:
            self._sender.plain.born_timestamp = cython.cast(int64_t, value)
        else:
            return 0
        return 1

    @cython.cfunc
    def _receipt(self) -> bytes:
        """A SendBatchResponse with the place of the last batch."""
        sender: CompiledSender = self._sender
        physical: uint64_t = sender.place.physical_offset
        digits: cython.Py_ssize_t = PyBytes_GET_SIZE(self._digits)
        head: cython.uchar[160]
        i: cython.int
        packed: cython.Py_ssize_t = 0
        for i in range(self._batch.count):
            packed += number_size(self._offsets[i])
        head[0] = _STATUS
        head[1] = _PUT_OK
        to: cython.p_uchar = put_field(head + 2, _RECEIPT_QUEUE, sender.plain.queue_id)
        to = put_field(to, _FIRST_OFFSET, sender.place.queue_offset)
        to = put_field(to, _RECEIPT_COUNT, self._batch.count)
        to = put_field(to, _STORE_TIMESTAMP, sender.place.store_timestamp)
        to[0] = _MESSAGE_ID
        to[1] = cython.cast(cython.uchar, digits + 16)
        memcpy(to + 2, start(self._digits), digits)
        to += 2 + digits
        for i in range(16):
            to[15 - i] = start(_HEX)[(physical >> (4 * i)) & 15]
        to[16] = _PHYSICAL_OFFSETS
        to = put_number(to + 17, packed)
        size: cython.Py_ssize_t = to - head
        answer: bytes = PyBytes_FromStringAndSize(cython.NULL, 1 + number_size(size + packed) + size + packed)
        to = cython.cast(cython.p_uchar, PyBytes_AS_STRING(answer))
        to[0] = _BATCH_RECEIPTS
        to = put_number(to + 1, size + packed)
        memcpy(to, head, size)
        to += size
        for i in range(self._batch.count):
            to = put_number(to, self._offsets[i])
        return answer
