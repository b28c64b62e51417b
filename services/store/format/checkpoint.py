"""The file ``checkpoint``: how far the other files were safe when it was written.

    0   long  physicMsgTimestamp    store time (ms) up to which the commit log is flushed
    8   long  logicsMsgTimestamp    store time up to which consume queues are written
    16  long  indexMsgTimestamp     store time up to which the index is flushed
    24  long  masterFlushedOffset   5.x, high availability
    32  long  confirmPhyOffset      5.x, high availability
    40  …     zero up to 4,096; ours: "TMCP", then the CRC-32 of bytes 0 to 39

4.x knows only the first three. Source: StoreCheckpoint. A broker that is not ours writes the numbers and leaves the
rest alone: the checksum then fits no more, and what only we mean by them is not believed.
"""

from dataclasses import dataclass, replace
from struct import Struct
from zlib import crc32

from tandemmq.store.format.errors import FormatError

CHECKPOINT_SIZE = 4096
_FIELDS = Struct(">5q")
_LEAST = 24
_MAGIC = b"TMCP"
_SEAL = Struct(">4sI")
_TAIL_SIZE = CHECKPOINT_SIZE - _FIELDS.size


class CorruptCheckpoint(FormatError):
    """Too short to be a checkpoint."""


@dataclass(slots=True)
class Checkpoint:
    """The values of a checkpoint; ``tail`` keeps bytes after them that a later version may have written."""

    physic: int = 0
    logics: int = 0
    index: int = 0
    master_flushed: int = 0
    confirm: int = 0
    tail: bytes = b""

    def encode(self) -> bytes:
        """Exactly 4,096 bytes."""
        fields = _FIELDS.pack(self.physic, self.logics, self.index, self.master_flushed, self.confirm)
        return fields + self.tail[:_TAIL_SIZE].ljust(_TAIL_SIZE, b"\x00")

    def sealed(self) -> "Checkpoint":
        """The same with the checksum of its numbers."""
        return replace(self, tail=self._seal() + self.tail[_SEAL.size :])

    @property
    def is_sealed(self) -> bool:
        """Whether it has a checksum, fitting or not."""
        return self.tail[: len(_MAGIC)] == _MAGIC

    @property
    def is_changed(self) -> bool:
        """Whether it has a checksum, which does not fit: another broker has written it, or it is damaged."""
        return self.is_sealed and self.tail[: _SEAL.size].ljust(_SEAL.size, b"\0") != self._seal()

    def _seal(self) -> bytes:
        return _SEAL.pack(_MAGIC, crc32(self.encode()[: _FIELDS.size]))

    @classmethod
    def decode(cls, data: bytes) -> "Checkpoint":
        """From at least the 24 bytes that every version writes; CorruptCheckpoint if there are fewer."""
        if len(data) < _LEAST:
            raise CorruptCheckpoint(
                f"a checkpoint has {CHECKPOINT_SIZE} bytes, at least {_LEAST}; this one has {len(data)}"
            )
        fields = _FIELDS.unpack(data[: _FIELDS.size].ljust(_FIELDS.size, b"\x00"))
        physic, logics, index, master_flushed, confirm = fields
        return cls(physic, logics, index, master_flushed, confirm, data[_FIELDS.size :].rstrip(b"\x00"))
