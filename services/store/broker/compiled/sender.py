"""CompiledSender: a plain message from a client, checked and stored. Compiled; its Python twin is `Sender`.

Fronts give it a message piece by piece (`CompiledMessage`), then call `send`. Where one of these gives 0, the message
is not plain, nothing has changed, and `Sender` does it, which also says what is wrong. A plain message has properties
that mean nothing to the broker when it is sent, goes to a topic that is there, and is no copy of another.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.dict import PyDict_GetItemWithError, PyDict_SetItem
from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.tandemmq.store.broker.compiled.plain_message import CompiledMessage
from cython.cimports.tandemmq.store.log.compiled.appender import Batch, CompiledAppender, Place, Plain, PlainTopic

from tandemmq.common.topic_names import BROKER_WRITES, RETRY
from tandemmq.store.broker.rules import CLIENT_FLAGS, COMPRESSION_TYPES
from tandemmq.store.broker.send import Sender
from tandemmq.store.broker.topics import PERM_WRITE
from tandemmq.store.format.properties import UNIQ_KEY

_ANY_QUEUE: cython.int = -1
_LONGEST_KEY: cython.Py_ssize_t = 256
"""Bytes of a UNIQ_KEY of which a copy is recognized without Python."""
_WRITE: cython.int = PERM_WRITE
_UNIQUE: bytes = UNIQ_KEY.encode()
_RETRY: bytes = RETRY.encode()
_CLIENT_FLAGS: cython.int = CLIENT_FLAGS
_COMPRESSION: cython.int = 0x700
_LAST_COMPRESSION: cython.int = max(COMPRESSION_TYPES)


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def is_closed(topic: PlainTopic) -> cython.int:
    """Whether only the broker writes to a topic."""
    if topic.closed < 0:
        topic.closed = topic.name in BROKER_WRITES
    return topic.closed


@cython.cclass
class CompiledSender(CompiledMessage):
    """See the module."""

    def __init__(self, sender: Sender, appender: CompiledAppender) -> None:
        """Do for clients what `sender` does, with its topics, its turns of queues, and its window of duplicates."""
        CompiledMessage.__init__(self, sender.max_properties)
        self._appender = appender
        self._table, self._state = sender.topics, 1
        sender.topics.changed.listen(self.look_up_again)
        self._turns = sender.turns
        self._new_id = sender.new_id
        self._duplicates = sender.duplicates
        self._of_all = sender.duplicates is not None and sender.duplicates.of_all
        if sender.duplicates is not None:
            self._remembered, self._order = sender.duplicates.stored, sender.duplicates.order
            self._window, self._most_remembered = sender.duplicates.window_ms, sender.duplicates.most
        self._most_body = sender.max_body
        self.digits = sender.store_host.digits.encode()

    def look_up_again(self) -> None:
        """The table of topics has changed: what is known of them may be so no more."""
        self._state += 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def send(self, name: cython.p_const_uchar, name_size: cython.Py_ssize_t, born_host: bytes) -> cython.int:
        """Store the message: 1, and its place; or 0. `born_host`: where it was made, packed."""
        plain: cython.pointer(Plain) = cython.address(self.plain)
        topic: PlainTopic = self._appender.topic(name, name_size)
        if topic is None or is_closed(topic) or plain.body_size > self._most_body:
            return 0
        if not self._flags_are_plain():
            return 0
        turn: cython.longlong = self._choose_queue(topic)
        if turn < 0 or not self._identify(topic):
            return 0
        plain.born_host = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(born_host))
        plain.born_host_size = PyBytes_GET_SIZE(born_host)
        if not self._appender.append(topic, plain, cython.address(self.place)):
            return 0
        if turn:
            self._turns[topic.name] = turn
        if self._watched is not None:
            self._remember()
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def send_batch(
        self,
        name: cython.p_const_uchar,
        name_size: cython.Py_ssize_t,
        batch: cython.pointer(Batch),
        born_host: bytes,
    ) -> cython.int:
        """Store a batch as a producer laid it out: 1, and its place; or 0. See `CompiledAppender.append_batch`."""
        plain: cython.pointer(Plain) = cython.address(self.plain)
        topic: PlainTopic = self._appender.topic(name, name_size)
        retry: cython.Py_ssize_t = PyBytes_GET_SIZE(_RETRY)
        if topic is None or is_closed(topic) or not self._flags_are_plain():
            return 0
        if name_size >= retry and memcmp(name, PyBytes_AS_STRING(_RETRY), retry) == 0:
            return 0
        if self._of_all and self._duplicates.watches(topic.name, "any", 0):
            return 0
        turn: cython.longlong = self._choose_queue(topic)
        if turn < 0:
            return 0
        if plain.born_timestamp == 0:
            plain.born_timestamp = self._appender.now_ms()
        plain.born_host = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(born_host))
        plain.born_host_size = PyBytes_GET_SIZE(born_host)
        if not self._appender.append_batch(topic, plain, batch, self._most_body, cython.address(self.place)):
            return 0
        if turn:
            self._turns[topic.name] = turn
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _flags_are_plain(self) -> cython.int:
        """Whether a client may set those that it has set."""
        flags: cython.int = self.plain.sys_flag
        return not (flags & ~_CLIENT_FLAGS or (flags & _COMPRESSION) > _LAST_COMPRESSION)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _choose_queue(self, topic: PlainTopic) -> cython.longlong:
        """Give the message a queue: the turn that comes after it, 0 if the message names its queue; or -1."""
        if topic.looked_up != self._state:
            config: object = self._table.get(topic.name)
            if config is None:
                return -1
            topic.perm = config.perm
            topic.queues = config.write_queues
            topic.looked_up = self._state
        queues: cython.longlong = topic.queues
        if not topic.perm & _WRITE or queues < 1:
            return -1
        if self.plain.queue_id == _ANY_QUEUE:
            turn: cython.longlong = self._turns.get(topic.name, 0)
            self.plain.queue_id = cython.cast(cython.int, turn % queues)
            return turn + 1
        return 0 if 0 <= self.plain.queue_id < queues else -1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _identify(self, topic: PlainTopic) -> cython.int:
        """Give the message a time and a UNIQ_KEY, if it has none: 1; or 0, where it is a copy, or there is no room."""
        self._watched = None
        if self.plain.born_timestamp == 0:
            self.plain.born_timestamp = self._appender.now_ms()
        if self.unique == cython.NULL:
            return self.add_own(_UNIQUE, self._new_id(self.plain.born_timestamp).encode())
        if not (self._of_all or (self.repeatable and self._duplicates is not None)):
            return 1
        if self.plain.reconsume_times or not self._watches(topic.name):
            return 1
        if self.unique_size > _LONGEST_KEY:
            return 0
        self._watched = self._name_of(topic)
        self._known = PyDict_GetItemWithError(self._remembered, self._watched) != cython.NULL
        if not self._known and self._appender.now_ms() - self._window > self._duplicates.remembered_since:
            return 1
        return self._duplicates.find(topic.name, self.unique[: self.unique_size].decode()) is None

    @cython.cfunc
    def _name_of(self, topic: PlainTopic) -> str:
        """By what the message is remembered: `duplicates.name_of`."""
        name: cython.char[512]  # 255 of a topic at most, the 02, _LONGEST_KEY
        size: cython.Py_ssize_t = topic.field_size - 1
        memcpy(name, cython.address(topic.field[1]), size)
        name[size] = 2
        memcpy(cython.address(name[size + 1]), self.unique, self.unique_size)
        return PyUnicode_DecodeUTF8(name, size + 1 + self.unique_size, cython.NULL)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _watches(self, topic: object) -> cython.int:
        """Whether copies of a topic's messages are ones that nobody wants."""
        if topic is not self._asked:
            self._asked_is_watched = self._duplicates.watches(topic, "any", 0, repeatable=True)
            self._asked = topic
        return self._asked_is_watched

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _remember(self) -> cython.int:
        """Later copies of what was stored are recognized: what `DuplicateWindow.add` does, and its `forget`."""
        place: cython.pointer(Place) = cython.address(self.place)
        order: object = self._order
        remembered: dict = self._remembered
        first: int64_t[5]
        if not self._known:
            order.append(self._watched)
        first[0], first[1], first[2] = self.plain.queue_id, place.physical_offset, place.size
        first[3], first[4] = place.queue_offset, place.store_timestamp
        packed: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, first), cython.sizeof(first))
        PyDict_SetItem(remembered, self._watched, packed)
        since: int64_t = place.store_timestamp - self._window
        while self._stored_at(order[0]) < since or len(order) > self._most_remembered:  # with many producers: for each
            del remembered[order.popleft()]
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _stored_at(self, name: object) -> int64_t:
        """When a message that is remembered was stored: the last of its numbers."""
        first: bytes = self._remembered[name]
        when: int64_t
        size: cython.Py_ssize_t = cython.sizeof(when)
        memcpy(cython.address(when), PyBytes_AS_STRING(first) + len(first) - size, size)
        return when
