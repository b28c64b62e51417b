"""CompiledSendMessage: from the bytes of a SendMessageRequest to those of its answer. Its Python twin is `sending`.

What `CompiledSendRequest` does not take is left to Python.
"""

import cython
from cython.cimports.tandemmq.store.broker.compiled.sender import CompiledSender
from cython.cimports.tandemmq.store.fronts.compiled.spans import start
from cython.cimports.tandemmq.store.fronts.rocketmq5.compiled.send_answer import send_answer
from cython.cimports.tandemmq.store.fronts.rocketmq5.compiled.send_request import CompiledSendRequest, Sent

from tandemmq.store.broker.topics import TopicTable


@cython.cclass
class CompiledSendMessage(CompiledSendRequest):
    """See the module."""

    def __init__(self, sender: CompiledSender, topics: TopicTable, takes_normal: object) -> None:
        """See CompiledSendRequest."""
        CompiledSendRequest.__init__(self, sender, topics, takes_normal)
        topics.changed.listen(self.look_up_again)
        self._sender = sender
        self.waits = True

    def answer(self, message: bytes, peer: bytes) -> bytes | None:
        """Store the message of a request, and give the answer with OK; None: it is not taken, and nothing has changed.

        `peer`: the packed address of the caller. `end_offset` is then what to wait for.
        """
        data: cython.p_const_uchar = start(message)
        sent: cython.pointer(Sent) = cython.address(self.sent)
        sender: CompiledSender = self._sender
        if not self.read(message) or not sender.send(cython.address(data[sent.topic.at]), sent.topic.size, peer):
            return None
        self.taken += 1
        self.end_offset = sender.place.physical_offset + sender.place.size
        return send_answer(sender.unique, sender.unique_size, sender.place.queue_offset)
