"""The file ``tandem.epoch``: whether a directory is a master's or a slave's, since when (ours; RocketMQ ignores it).

Each mastership has a number, its epoch, and each promotion makes it greater; that is how an old master that comes back
is told from the new one. The file is written when a role changes while the store runs (promotion, demotion, fencing)
and when a slave meets a master of another epoch. Without a file a store is what its settings say, in epoch 1. JSON::

    {"version": 1, "role": "SYNC_MASTER", "fenced_by": 3, "epochs": [[1, 0], [2, 3646758]],
     "store_id": "6f1c...", "promises": [[3, "90ab...", "10.0.0.7:8084"]], "crc32": 42}

``role``: wins over ``brokerRole``; null where the settings decide. ``fenced_by``: a greater epoch than the store's own
that this store knows of: a master takes no messages because of it, and a slave takes no bytes of an older master; 0
where there is none. ``epochs``: number and first log offset of every mastership that is known, oldest first. RocketMQ's
controller mode has the same notion (``EpochFileCache``). ``store_id``: the directory's name, made at random; a master
that was never anything else has none. ``promises``: the nodes that were promised an epoch, each with the greatest and
the address of its replicator. An epoch is promised to one node only, so no two nodes begin it; a promise stands until a
master of that epoch or a newer one is followed. (Files of older releases have neither of the last two.)
"""

import uuid
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.common.files.replacing import write_atomically
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.format.naturals import natural
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.errors import UnusableDirectory, WrongRole
from tandemmq.store.log.event import Event
from tandemmq.store.log.marks.manifest import read_manifest
from tandemmq.store.log.replica.replica_group import GroupFile

NAME = "tandem.epoch"

_JUMP_MAX = 1 << 32
"""Promotions that can have been missed. Whoever names a greater epoch errs: taken, it would leave the next none."""

VERSION = 1

FIRST_EPOCH = 1
"""Of a master that was never promoted."""


class EpochStart(NamedTuple):
    """One mastership, and where the log ended when it began."""

    epoch: int
    start_offset: int


class Promise(NamedTuple):
    """An epoch that a node wants to begin: its store id (empty: unknown) and its replicator's address (or empty)."""

    epoch: int
    store_id: str = ""
    address: str = ""


class Mastership:
    """Role, epoch and fence of one store directory. A change is on disk before it counts."""

    def __init__(self, root: Path, disk: Disk, configured: BrokerRole) -> None:
        """Read the file of the store directory ``root``.

        Raises:
            UnusableDirectory: the file cannot be read. To guess would risk two masters.
        """
        self._path = root / NAME
        self._disk = disk
        self.configured = configured
        self._role: BrokerRole | None = None
        self.fenced_by = 0
        self.epochs: tuple[EpochStart, ...] = (EpochStart(FIRST_EPOCH, 0),)
        self.promises: tuple[Promise, ...] = ()
        self.store_id = ""
        self.changed = Event()
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
    def role(self) -> BrokerRole:
        """What the store is now."""
        return self._role or self.configured

    @property
    def is_slave(self) -> bool:
        """Whether messages come from a master only."""
        return self.role is BrokerRole.SLAVE

    @property
    def epoch(self) -> int:
        """Number of the present mastership."""
        return self.epochs[-1].epoch

    @property
    def overrides(self) -> bool:
        """Whether the role is another than the settings say, by a promotion or demotion."""
        return self.role is not self.configured

    @property
    def newest_known(self) -> int:
        """The greatest epoch that this store has been in, has heard of, or has promised."""
        return max(self.epoch, self.fenced_by)

    def name(self) -> None:
        """Give the directory its name, unless it has one. Raises OSError: nothing has changed."""
        if not self.store_id:
            self._change(self._role, self.fenced_by, self.epochs, self.promises)

    def promised_to_itself(self, epoch: int) -> bool:
        """Whether that is the newest epoch known, and this store's own to begin."""
        own = Promise(epoch, self.store_id)
        return epoch == self.fenced_by and bool(own.store_id) and any(one[:2] == own[:2] for one in self.promises)

    def promote(self, role: BrokerRole, epoch: int, start_offset: int) -> None:
        """Become a master from ``start_offset`` on; epoch 0 means the next one.

        Raises:
            WrongRole: the role is no master's, or the epoch is neither newer than all that are known nor the one that
                this store has promised to itself. OSError: nothing has changed.
        """
        epoch = epoch or self.epoch + 1
        if role is BrokerRole.SLAVE:
            raise WrongRole("A store is promoted to ASYNC_MASTER or SYNC_MASTER, not to SLAVE.")
        if epoch <= self.newest_known and not self.promised_to_itself(epoch):
            raise WrongRole(
                f"Epoch {epoch} is not newer than {max(self.epoch, self.fenced_by)}, which this store knows of.",
                remedy="Promote with a greater epoch, or without naming one.",
            )
        self._change(role, 0, (*self.epochs, EpochStart(epoch, start_offset)), ())

    def demote(self, epoch: int) -> None:
        """Become a slave of the master of ``epoch``; its number is taken with the first bytes from it.

        What was fenced or promised stands until then.

        Raises:
            WrongRole: the epoch is older than the store's own. OSError: nothing has changed.
        """
        self.check_followed(epoch)
        self._change(BrokerRole.SLAVE, self.fenced_by, self.epochs, self.promises)

    def check_followed(self, epoch: int) -> None:
        """Raises WrongRole: a master of ``epoch`` is older than this store."""
        if epoch < self.epoch:
            raise WrongRole(
                f"A master of epoch {epoch} is older than this store, whose epoch is {self.epoch}.",
                remedy="Follow the newest master.",
            )

    def fence(self, epoch: int, store_id: str = "", address: str = "") -> bool:
        """Note a newer master, or promise its epoch to the node that wants to be it.

        False where ``epoch`` is not newer than what is known, and nothing changes.

        Raises:
            WrongRole: it is too much newer. OSError: nothing has changed.
        """
        if epoch <= self.newest_known:
            return False
        others = (one for one in self.promises if one.store_id != store_id)
        self._change(self._role, epoch, self.epochs, (*others, Promise(epoch, store_id, address)))
        return True

    def check_source(self, epoch: int) -> None:
        """Whether bytes of a master of ``epoch`` may be taken; 0 is a master that did not introduce itself (RocketMQ).

        Raises:
            WrongRole: this is no slave, or it knows of a newer master.
        """
        if not self.is_slave:
            raise WrongRole(
                f"This store is {self.role}: it takes no replica bytes.",
                remedy="Point the replicator at the right store, or make this one a slave (tandem replica follow).",
            )
        if not epoch and self.newest_known > 1:
            raise WrongRole(
                f"The master did not introduce itself, but this slave knows of epoch {self.newest_known}: "
                "a master that may be older is not followed.",
                remedy="haMasterReplicatorAddress must be the master's replicator, and reachable from here.",
            )
        if epoch and epoch < self.newest_known:
            what = "has promised to follow none before" if epoch >= self.epoch else "has followed one of"
            raise WrongRole(
                f"The master's epoch is {epoch}, but this slave {what} epoch {self.newest_known}: "
                "the old master is not followed.",
                remedy="Point haMasterAddress at the newest master.",
            )

    def follow(self, epoch: int, end_offset: int) -> None:
        """Take bytes of a master of ``epoch`` from ``end_offset`` on: no promise stands any more.

        Raises:
            WrongRole: see `check_source`. OSError: nothing has changed.
        """
        self.check_source(epoch)
        if epoch and (epoch > self.epoch or self.fenced_by):
            epochs = self.epochs if epoch == self.epoch else (*self.epochs, EpochStart(epoch, end_offset))
            self._change(self._role, 0, epochs, ())

    def _change(
        self, role: BrokerRole | None, fenced_by: int, epochs: tuple[EpochStart, ...], promises: tuple[Promise, ...]
    ) -> None:
        """Raises WrongRole: the number is out of the question. OSError: nothing has changed."""
        newest, known = max(fenced_by, epochs[-1].epoch), max(self.fenced_by, self.epoch)
        if newest > known + _JUMP_MAX:
            raise WrongRole(
                f"Epoch {newest} is not believed: this store knows of none newer than {known}.",
                remedy="Each promotion makes the number one greater; look at who calls.",
            )
        store_id = self.store_id or uuid.uuid4().hex
        document = {
            "version": VERSION,
            "role": None if role is None else role.value,
            "fenced_by": fenced_by,
            "epochs": [list(one) for one in epochs],
            "store_id": store_id,
            "promises": [list(one) for one in promises],
        }
        write_atomically(self._disk, self._path, seal(document))
        self._role, self.fenced_by, self.epochs = role, fenced_by, epochs
        self.promises, self.store_id = promises, store_id
        self.changed()

    def _take(self, data: bytes) -> None:
        document = unseal(data)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']} is not known")
        epochs = tuple(EpochStart(natural(epoch), natural(start)) for epoch, start in document["epochs"])
        if not epochs or any(before.epoch >= after.epoch for before, after in pairwise(epochs)):
            raise ValueError("the epochs do not rise")
        role = document["role"]
        self._role = None if role is None else BrokerRole(role)
        promises = tuple(Promise(*one) for one in document.get("promises", ()))
        if not all(list(map(type, one)) == [int, str, str] for one in promises):
            raise ValueError("the promises are not epoch, store id and address")
        self.promises, self.store_id = promises, str(document.get("store_id", ""))
        self.fenced_by, self.epochs = natural(document["fenced_by"]), epochs


def note_end_of_log(root: Path, disk: Disk) -> None:
    """Note in ``tandem.group`` how far a log had come that is about to be given up, as far as its manifest knows.

    Raises:
        UnusableDirectory: the file cannot be read. OSError: it cannot be written.
    """
    manifest = read_manifest(root)
    if manifest is not None:
        GroupFile(root, disk).had(manifest.position)
