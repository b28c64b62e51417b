"""The file ``tandem.group``: what a node knows of its master and of the other slaves (ours; RocketMQ ignores it).

A slave can take over from a master that is silent only if it knows whose acknowledgements that master counted, and how
far its log had come. The master tells, and the slave's store notes it before it takes a byte. The file stays when a
slave is seeded anew: an empty log does not mean that there was nothing. JSON, sealed::

    {"version": 1, "epoch": 2, "generation": 3, "needed": 1, "needed_before": 1, "known_end": 3646758,
     "members": [["1", "90ab...", "10.0.0.7:8084", false]],
     "master": ["10.0.0.5:10912", "10.0.0.5:8084"], "crc32": 42}

The fields are those of ``ReplicaGroup`` in replica_log.proto; ``members``: identity, store id, address, joining.
``master``: where ``tandem replica follow`` said that the master is (HA, replicator), which wins over the settings;
empty texts where it said nothing.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.common.files.replacing import write_atomically
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.errors import UnusableDirectory

NAME = "tandem.group"

VERSION = 1


class GroupMember(NamedTuple):
    """A slave whose acknowledgements its master counts, or will when enough others know of it (``joining``)."""

    identity: str
    store_id: str
    address: str
    joining: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaGroup:
    """What a master told of itself and its slaves; epoch 0: nothing is known."""

    epoch: int = 0
    generation: int = 0
    needed: int = 0
    needed_before: int = 0
    known_end: int = 0
    members: tuple[GroupMember, ...] = ()


class GroupFile:
    """The group that a store directory knows of, and the master that it was told to follow."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Read the file of the store directory ``root``.

        Raises:
            UnusableDirectory: the file cannot be read.
        """
        self._path = root / NAME
        self._disk = disk
        self.group = ReplicaGroup()
        self.master = ("", "")
        """HA address and replicator's address of the master to follow; empty where the settings decide."""
        try:
            self._take(self._path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnusableDirectory(
                f"{self._path} cannot be read: {error}. It says what this node knows of its master.",
                remedy="Restore it from a back-up; or remove it: then this node is promoted with --accept-loss only, "
                "until it has followed its master again.",
            ) from error

    def remember(self, group: ReplicaGroup) -> None:
        """Note what was told; older news changes nothing, and the known end of an epoch only grows.

        Raises OSError: nothing has changed.
        """
        known = self.group
        if (group.epoch, group.generation) < (known.epoch, known.generation):
            group = replace(known, known_end=group.known_end if group.epoch == known.epoch else 0)
        if group.epoch == known.epoch:
            group = replace(group, known_end=max(group.known_end, known.known_end))
        if group != known:
            self._write(group, self.master)

    def had(self, end_offset: int) -> None:
        """The log ended there, and is about to be given up. Raises OSError: nothing has changed."""
        if end_offset > self.group.known_end:
            self._write(replace(self.group, known_end=end_offset), self.master)

    def follow(self, ha_address: str, replicator_address: str) -> None:
        """Note the master to follow; empty texts: the settings decide again. Raises OSError: nothing has changed."""
        if (ha_address, replicator_address) != self.master:
            self._write(self.group, (ha_address, replicator_address))

    def _write(self, group: ReplicaGroup, master: tuple[str, str]) -> None:
        document = {
            "version": VERSION,
            "epoch": group.epoch,
            "generation": group.generation,
            "needed": group.needed,
            "needed_before": group.needed_before,
            "known_end": group.known_end,
            "members": [list(one) for one in group.members],
            "master": list(master),
        }
        write_atomically(self._disk, self._path, seal(document))
        self.group, self.master = group, master

    def _take(self, data: bytes) -> None:
        document = unseal(data)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']} is not known")
        members = tuple(GroupMember(*one) for one in document["members"])
        if not all(list(map(type, one)) == [str, str, str, bool] for one in members):
            raise ValueError("the members are not identity, store id, address and whether they join")
        numbers = {name: document[name] for name in ("epoch", "generation", "needed", "needed_before", "known_end")}
        if not all(type(number) is int and number >= 0 for number in numbers.values()):
            raise ValueError("a number is none, or negative")
        ha_address, replicator_address = document["master"]
        if not type(ha_address) is type(replicator_address) is str:
            raise ValueError("the master's addresses are no texts")
        self.group = ReplicaGroup(members=members, **numbers)
        self.master = (ha_address, replicator_address)
