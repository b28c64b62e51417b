"""Why a slave does not follow its master.

Two kinds: a `SlaveRefusal` lasts until somebody acts, so the slave tries again seldom and says that it is not well; any
other `FollowError` is an interruption, which passes.
"""

from typing import ClassVar

from tandemmq.common.errors import Kind, TandemError

_RESEED = (
    're-seed this slave (tandem replica reseed), or follow another master: docs/replication.md, "Re-seeding a slave"'
)


class FollowError(TandemError):
    """Following ended; the slave dials again after a short pause."""

    kind = Kind.AWAY
    reason: ClassVar[str] = "interrupted"
    """A word for metrics."""


class MasterUnreachable(FollowError):
    """The master cannot be dialled."""

    reason = "unreachable"


class MasterClosed(FollowError):
    """The master closed the connection, or the network broke it."""

    reason = "closed"


class MasterSilent(FollowError):
    """Nothing arrived for haHousekeepingInterval; a master that lives sends heartbeats."""

    reason = "silent"


class NotIntroduced(FollowError):
    """The master's replicator does not answer, and a master without one may be an old one."""

    reason = "introduction"
    remedy = "haMasterReplicatorAddress must be the master's replicator, and reachable from here"


class StoreGone(FollowError):
    """Our own store ended, or takes no replica bytes."""

    reason = "store"


class CorruptBytes(FollowError):
    """What arrived is no whole, right record: it was changed on the way, or the master's log is damaged there."""

    kind = Kind.DAMAGED
    reason = "corrupt"


class StagingFailed(FollowError):
    """The staging file cannot be made."""

    kind = Kind.EXHAUSTED
    reason = "staging"


class LocalLogUnreadable(FollowError):
    """The end of our own log cannot be read, so it cannot be compared."""

    kind = Kind.DAMAGED
    reason = "local_log"
    remedy = "is storePathRootDir the directory of the store at storeAddress?"


class SlaveRefusal(FollowError):
    """Following this master would damage the log. Lasts until somebody acts."""

    kind = Kind.NOT_POSSIBLE
    reason = "refused"
    remedy = _RESEED
    seen_in_frames: ClassVar[bool] = False
    """Whether it was found in what arrived, where a changed bit looks the same: it counts when it is found again."""


class NoMasterNamed(SlaveRefusal):
    """Nobody said whom to follow."""

    reason = "nobody"
    remedy = "set haMasterAddress, or say it with `tandem replica follow`"


class LogsDiffer(SlaveRefusal):
    """A fork: both logs have a byte at an offset, and not the same."""

    reason = "fork"
    seen_in_frames = True
    remedy = (
        "first ask which of the two is damaged: tandem data audit --pair, which heals it with --repair; only where "
        "both logs are whole, re-seed this slave (tandem replica reseed), or follow another master: "
        'docs/replication.md, "When the logs differ"'
    )


class WrongOffset(SlaveRefusal):
    """A frame does not continue the log: bytes are missing before it, or it goes back."""

    reason = "offset"
    seen_in_frames = True


class MasterBeginsLater(SlaveRefusal):
    """The master no longer has what comes after our end."""

    reason = "expired"


class MasterEndsEarlier(SlaveRefusal):
    """We have more than the master: it lost its end, or was replaced by one that never had it."""

    reason = "ahead"
    remedy = (
        "make this node the master if its messages count, else re-seed it (tandem replica reseed): "
        'docs/replication.md, "Promotion" and "Re-seeding a slave"'
    )


class MasterHasNothing(SlaveRefusal):
    """The master sends nothing from the offset on that we asked for."""

    reason = "nothing"


class OtherFileSize(SlaveRefusal):
    """The master's log files have another size."""

    reason = "file_size"
    seen_in_frames = True
    remedy = "give master and slave the same mappedFileSizeCommitLog; a store keeps the one it was made with"


class OlderMaster(SlaveRefusal):
    """The master's epoch is lower than ours: it was replaced, and does not know."""

    reason = "epoch"
    remedy = "fence it (tandem replica promote does), and set haMasterAddress to the newest master"


class NotAMaster(SlaveRefusal):
    """The node at haMasterAddress is a slave, or was replaced by a newer master."""

    reason = "role"
    remedy = "set haMasterAddress to the newest master"


class BadStream(SlaveRefusal):
    """What arrives is not the HA protocol, or a frame is larger than the protocol can carry."""

    kind = Kind.DAMAGED
    reason = "frame"
    seen_in_frames = True
    remedy = (
        "is haMasterAddress the HA port of a RocketMQ or TandemMQ master (enableControllerMode=false, "
        "haTransferBatchSize at most 4 MiB - 12)?"
    )


def follow_end_reasons() -> list[str]:
    """The reasons for which following can end, as words for metrics, sorted."""
    kinds, reasons = [FollowError], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if "reason" in vars(kind) and kind not in (FollowError, SlaveRefusal):
            reasons.add(kind.reason)
    return sorted(reasons)
