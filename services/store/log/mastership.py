"""The file ``tandem.epoch``: whether a directory is a master's or a slave's, since when (ours; RocketMQ ignores it).

Each mastership has a number, its epoch, and each promotion makes it greater; that is how an old master that comes back
is told from the new one. The file is written when a role changes while the store runs (promotion, demotion, fencing)
and when a slave meets a master of another epoch. Without a file a store is what its settings say, in epoch 1. JSON::

    {"version": 1, "role": "SYNC_MASTER", "fenced_by": 0, "epochs": [[1, 0], [2, 3646758]], "crc32": 42}

``role``: wins over ``brokerRole``; null where the settings decide. ``fenced_by``: the epoch of a newer master, because
of which this one takes no messages; 0 where there is none. ``epochs``: number and first log offset of every mastership
that is known, oldest first. RocketMQ's controller mode has the same notion (``EpochFileCache``).
"""

from collections.abc import Callable
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tandemmq.store.format.sealed import natural, seal, unseal
from tandemmq.store.log.disk import Disk, write_atomically
from tandemmq.store.log.errors import UnusableDirectory, WrongRole

NAME = "tandem.epoch"

_JUMP_MAX = 1 << 32
"""Promotions that can have been missed. Whoever names a greater epoch errs: taken, it would leave the next none."""

VERSION = 1


class Role(StrEnum):
    """RocketMQ's ``BrokerRole``."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


class EpochStart(NamedTuple):
    """One mastership, and where the log ended when it began."""

    epoch: int
    start_offset: int


class Mastership:
    """Role, epoch and fence of one store directory. A change is on disk before it counts."""

    def __init__(self, root: Path, disk: Disk, configured: Role) -> None:
        """Read the file of the store directory ``root``.

        Raises:
            UnusableDirectory: the file cannot be read. To guess would risk two masters.
        """
        self._path = root / NAME
        self._disk = disk
        self.configured = configured
        self._role: Role | None = None
        self.fenced_by = 0
        self.epochs: tuple[EpochStart, ...] = (EpochStart(1, 0),)
        self.on_change: Callable[[], None] | None = None
        try:
            self._take(self._path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnusableDirectory(
                f"{self._path} cannot be read: {error}. It says whether this store is a master.",
                remedy="Restore it from a back-up; or remove it if you are sure that brokerRole is right "
                "and no newer master was promoted.",
            ) from error

    @property
    def role(self) -> Role:
        """What the store is now."""
        return self._role or self.configured

    @property
    def is_slave(self) -> bool:
        """Whether messages come from a master only."""
        return self.role is Role.SLAVE

    @property
    def epoch(self) -> int:
        """Number of the present mastership."""
        return self.epochs[-1].epoch

    @property
    def overrides(self) -> bool:
        """Whether the role is another than the settings say, by a promotion or demotion."""
        return self.role is not self.configured

    def promote(self, role: Role, epoch: int, start_offset: int) -> None:
        """Become a master from ``start_offset`` on; epoch 0 means the next one.

        Raises:
            WrongRole: the role is no master's, or the epoch is not newer. OSError: nothing has changed.
        """
        epoch = epoch or self.epoch + 1
        if role is Role.SLAVE:
            raise WrongRole("A store is promoted to ASYNC_MASTER or SYNC_MASTER, not to SLAVE.")
        if epoch <= max(self.epoch, self.fenced_by):
            raise WrongRole(
                f"Epoch {epoch} is not newer than {max(self.epoch, self.fenced_by)}, which this store knows of.",
                remedy="Promote with a greater epoch, or without naming one.",
            )
        self._change(role, 0, (*self.epochs, EpochStart(epoch, start_offset)))

    def demote(self, epoch: int) -> None:
        """Become a slave of the master of ``epoch``; its number is taken with the first bytes from it.

        Raises:
            WrongRole: the epoch is older than the store's own. OSError: nothing has changed.
        """
        if epoch < self.epoch:
            raise WrongRole(
                f"A master of epoch {epoch} is older than this store, whose epoch is {self.epoch}.",
                remedy="Follow the newest master.",
            )
        self._change(Role.SLAVE, 0, self.epochs)

    def fence(self, epoch: int) -> bool:
        """Note a newer master; False where ``epoch`` is not newer than what is known.

        Raises:
            WrongRole: it is too much newer. OSError: nothing has changed.
        """
        if epoch <= max(self.epoch, self.fenced_by):
            return False
        self._change(self._role, epoch, self.epochs)
        return True

    def follow(self, epoch: int, end_offset: int) -> None:
        """Take bytes of a master of ``epoch`` from ``end_offset`` on; 0 is a master without epochs (RocketMQ).

        Raises:
            WrongRole: this store is no slave, or has seen a newer master. OSError: nothing has changed.
        """
        if not self.is_slave:
            raise WrongRole(
                f"This store is {self.role}: it takes no replica bytes.",
                remedy="Point the replicator at the right store, or make this one a slave (tandem follow).",
            )
        if not epoch or epoch == self.epoch:
            return
        if epoch < self.epoch:
            raise WrongRole(
                f"The master's epoch is {epoch}, but this slave has followed one of epoch {self.epoch}: "
                "the old master is not followed.",
                remedy="Point haMasterAddress at the newest master.",
            )
        self._change(self._role, 0, (*self.epochs, EpochStart(epoch, end_offset)))

    def _change(self, role: Role | None, fenced_by: int, epochs: tuple[EpochStart, ...]) -> None:
        """Raises WrongRole: the number is out of the question. OSError: nothing has changed."""
        newest, known = max(fenced_by, epochs[-1].epoch), max(self.fenced_by, self.epoch)
        if newest > known + _JUMP_MAX:
            raise WrongRole(
                f"Epoch {newest} is not believed: this store knows of none newer than {known}.",
                remedy="Each promotion makes the number one greater; look at who calls.",
            )
        document = {
            "version": VERSION,
            "role": None if role is None else role.value,
            "fenced_by": fenced_by,
            "epochs": [list(one) for one in epochs],
        }
        write_atomically(self._disk, self._path, seal(document))
        self._role, self.fenced_by, self.epochs = role, fenced_by, epochs
        if self.on_change is not None:
            self.on_change()

    def _take(self, data: bytes) -> None:
        document = unseal(data)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']} is not known")
        epochs = tuple(EpochStart(natural(epoch), natural(start)) for epoch, start in document["epochs"])
        if not epochs or any(before.epoch >= after.epoch for before, after in pairwise(epochs)):
            raise ValueError("the epochs do not rise")
        role = document["role"]
        self._role = None if role is None else Role(role)
        self.fenced_by, self.epochs = natural(document["fenced_by"]), epochs
