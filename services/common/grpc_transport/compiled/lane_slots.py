"""LaneSlots: where the objects around a lane have what it reads and writes of them with each call.

These are attributes of Python's, with slots (slots.pxd): Python and the lane see the same.
"""

import cython
from cython.cimports.tandemmq.common.grpc_transport.compiled.slots import tandem_slot_at

from tandemmq.common.grpc_transport.http2.budget import Account, Owner


@cython.cclass
class LaneSlots:
    """See the module."""

    def __init__(self, protocol: object) -> None:
        """Raises TypeError where a class has something in no slot."""
        self._of_connection(type(protocol.connection))
        self._of_sender(type(protocol.connection.sender))
        reader: object = type(protocol.connection.reader)
        self.progressed, self.behind = tandem_slot_at(reader, b"_progressed"), tandem_slot_at(reader, b"behind")
        kind: object = type(protocol)
        self.paused, self.transport = tandem_slot_at(kind, b"_paused"), tandem_slot_at(kind, b"_transport")
        self.written, self.writers = tandem_slot_at(kind, b"written"), tandem_slot_at(kind, b"writers")
        self.active = tandem_slot_at(type(protocol.server), b"active")
        self._of_budget(type(protocol.server.budget))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _of_connection(self, kind: object) -> cython.int:
        self.received, self.granted = tandem_slot_at(kind, b"_received"), tandem_slot_at(kind, b"_granted")
        self.acknowledged, self.draining = tandem_slot_at(kind, b"acknowledged"), tandem_slot_at(kind, b"draining")
        self.buffered, self.held = tandem_slot_at(kind, b"buffered"), tandem_slot_at(kind, b"held")
        self.failed, self.heads_size = tandem_slot_at(kind, b"failed"), tandem_slot_at(kind, b"heads_size")
        self.heard, self.receiving = tandem_slot_at(kind, b"heard"), tandem_slot_at(kind, b"receiving")
        self.last_stream_id = tandem_slot_at(kind, b"last_stream_id")
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _of_sender(self, kind: object) -> cython.int:
        self.block_prefix, self.congested = tandem_slot_at(kind, b"block_prefix"), tandem_slot_at(kind, b"congested")
        self.data_frames, self.output = tandem_slot_at(kind, b"data_frames"), tandem_slot_at(kind, b"output")
        self.initial_window, self.window = tandem_slot_at(kind, b"initial_window"), tandem_slot_at(kind, b"window")
        self.pending_bytes, self.ready = tandem_slot_at(kind, b"pending_bytes"), tandem_slot_at(kind, b"ready")
        self.size = tandem_slot_at(kind, b"size")
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _of_budget(self, kind: object) -> cython.int:
        self.accounts, self.tight = tandem_slot_at(kind, b"accounts"), tandem_slot_at(kind, b"tight")
        self.total, self.used = tandem_slot_at(kind, b"total"), tandem_slot_at(kind, b"used")
        self.waiting = tandem_slot_at(kind, b"waiting")
        self.account_closed, self.account_owner = tandem_slot_at(Account, b"closed"), tandem_slot_at(Account, b"owner")
        self.account_used, self.owner_used = tandem_slot_at(Account, b"used"), tandem_slot_at(Owner, b"used")
        return 1
