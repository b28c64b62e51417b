"""What the timer index was when it was last made durable: a small text file beside its files. No I/O.

::

    tandem-timers 1
    rules <precision in ms> <ms after which a message is stored again>
    indexed <queue offset>
    physical <log offset after the last record that is indexed>
    dropped <time in ms> <queue offset>
    <file name> <size in bytes> <CRC-32 of so many, in hex>
    ...
    crc <CRC-32 of all lines before, in hex>
"""

import zlib
from dataclasses import dataclass, field

_TITLE = "tandem-timers 1"
_HEAD = ["rules", "indexed", "physical", "dropped"]


class BadCheckpoint(ValueError):
    """The text is no checkpoint: the index is made anew from the log."""


@dataclass(frozen=True, slots=True)
class TimerCheckpoint:
    """Position and sizes.

    `rules`: by which the times were made; others make another index. `indexed`: all records of the queue below that
    offset are in the files, but for those that were delivered and dropped: of these none was behind `dropped` (time,
    offset).
    """

    rules: tuple[int, int] = (0, 0)
    indexed: int = 0
    physical: int = 0
    dropped: tuple[int, int] = (0, 0)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name -> size, checksum."""

    def encode(self) -> bytes:
        """The file's content."""
        lines = [
            _TITLE,
            f"rules {self.rules[0]} {self.rules[1]}",
            f"indexed {self.indexed}",
            f"physical {self.physical}",
            f"dropped {self.dropped[0]} {self.dropped[1]}",
            *(f"{name} {size} {crc:08x}" for name, (size, crc) in sorted(self.files.items())),
        ]
        text = "".join(line + "\n" for line in lines).encode()
        return text + b"crc %08x\n" % zlib.crc32(text)

    @classmethod
    def decode(cls, data: bytes) -> "TimerCheckpoint":
        """Read a file's content. Raises BadCheckpoint."""
        at = data.rfind(b"crc ")
        if at < 0 or data[at:] != b"crc %08x\n" % zlib.crc32(data[:at]):
            raise BadCheckpoint("its checksum is wrong")
        rows = [line.split(" ") for line in data[:at].decode("ascii", "replace").splitlines()]
        try:
            if " ".join(rows[0]) != _TITLE or [row[0] for row in rows[1:5]] != [
                "rules",
                "indexed",
                "physical",
                "dropped",
            ]:
                raise BadCheckpoint("it is of another version")
            (_, precision, roll), (_, indexed), (_, physical), (_, when, offset) = rows[1:5]
            files = {name: (int(size), int(crc, 16)) for name, size, crc in rows[5:]}
            return cls((int(precision), int(roll)), int(indexed), int(physical), (int(when), int(offset)), files)
        except (ValueError, IndexError) as error:
            raise BadCheckpoint(str(error)) from None
