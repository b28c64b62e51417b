"""Going on without the end of a log that is gone (`missing_files` refuses to do so by itself).

The log continues with an empty file after everything that is known to have been, so neither log offsets nor the queue
offsets that manifest or consume queues know are ever given again. What lies between is damage of kind ``missing``:
reported and read around. Files that come back later are taken up again by the next start. What lacks at the end of the
newest file is damage of kind ``rot``: that file is there.
"""

from dataclasses import dataclass

from tandemmq.common.files.boot import boot_id
from tandemmq.common.files.replacing import make_dirs
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.errors import NothingMissing, WrongRole
from tandemmq.store.log.marks import abort_file
from tandemmq.store.log.marks.checkpoint_file import CheckpointFile
from tandemmq.store.log.marks.end_file import reached_end
from tandemmq.store.log.marks.lock import StoreLock
from tandemmq.store.log.marks.manifest import NAME as MANIFEST
from tandemmq.store.log.marks.manifest import read_manifest
from tandemmq.store.log.recovery.damage import DamagedRange, DamageList
from tandemmq.store.log.recovery.missing_files import (
    MISSING,
    QUEUES,
    Witness,
    believed,
    is_last_full,
    log_end,
    shortened,
    witnesses,
)
from tandemmq.store.log.replica.mastership import Mastership
from tandemmq.store.log.segments.mapped_file import MappedFile, file_name


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """What is gone, log offsets [begin, end), and where the log goes on: at ``end``.

    ``numbers_known``: whether something still knows all queue offsets that were given. If not, those of messages that
    are lost may be given again.
    """

    begin: int
    end: int
    numbers_known: bool


def find_loss(config: StoreConfig, disk: Disk, boot: bytes | None = None) -> AcceptedLoss:
    """What would be given up; nothing is changed. ``boot``: the machine's, where it is not its `boot_id`.

    Raises:
        NothingMissing: the end of the log is there. UnusableDirectory: as when a store is opened.
    """
    root, size = config.store_path_root_dir, config.mapped_file_size_commit_log
    exit_before = abort_file.last_exit(root)
    manifest = None if exit_before is abort_file.Exit.CRASH_OF_ANOTHER else read_manifest(root)
    checkpoint = CheckpointFile(root, disk)
    trusted = believed(manifest, checkpoint)
    found = list(witnesses(config, trusted, checkpoint, disk))
    end, reached = log_end(config), reached_end(root, exit_before, boot_id() if boot is None else boot)
    short = shortened(config, trusted, reached, ours=trusted is manifest)
    if short is not None:
        at, witness = short
        if at < end:
            return AcceptedLoss(at, end, numbers_known(exit_before, found))
        found.append(witness)
    furthest = max(found, key=lambda witness: witness.end, default=Witness(0, ""))
    if (furthest.end <= end and not is_last_full(config, end)) if end else not found:
        raise NothingMissing(f"The end of the log in {config.commit_log_dir} is there: no loss is to be accepted.")
    begin = end or furthest.begin - furthest.begin % size
    reached = max(furthest.end, begin + 1)
    if exit_before is not abort_file.Exit.CLEAN:  # what came after the last checkpoint may be known to nobody
        reached += config.checkpoint_log_bytes
    behind = -(-reached // size) * size
    return AcceptedLoss(begin, behind, numbers_known(exit_before, found))


def _range(loss: AcceptedLoss, size: int) -> DamagedRange:
    if loss.begin % size:
        return DamagedRange(loss.begin, loss.end, "rot", "the log goes on without what this file had here")
    return DamagedRange(loss.begin, loss.end, MISSING, "the log goes on without these files")


def numbers_known(exit_before: abort_file.Exit, found: list[Witness]) -> bool:
    """After a crash the manifest does not know what was given since the last checkpoint; units do."""
    known = {QUEUES, MANIFEST} if exit_before is abort_file.Exit.CLEAN else {QUEUES}
    return any(witness.what in known for witness in found)


def accept_loss(config: StoreConfig, disk: Disk) -> AcceptedLoss:
    """Let the log of a directory that no store uses go on after what is missing.

    Raises:
        NothingMissing: nothing was changed. StoreLocked: a store is using the directory.
        WrongRole: it is a slave's, whose master has the bytes. UnusableDirectory: as when a store is opened.
        DiskFull, DiskFailed: there is no room for a log file.
    """
    root, size = config.store_path_root_dir, config.mapped_file_size_commit_log
    lock = StoreLock(root, disk)
    try:
        if Mastership(root, disk, BrokerRole(config.broker_role)).is_slave:
            raise WrongRole(
                f"{root} is a slave's: its master has what is missing.",
                remedy="Let it take the master's history anew: tandem replica reseed. Or make another node the master.",
            )
        loss = find_loss(config, disk)
        if loss.end > loss.begin:
            damage = DamageList(root, disk)
            damage.add(_range(loss, size))
            damage.save()
        make_dirs(disk, config.commit_log_dir)
        MappedFile.create(disk, config.commit_log_dir / file_name(loss.end), size, loss.end)
        return loss
    finally:
        lock.release()
