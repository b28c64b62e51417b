"""What can go wrong with jobs over a commit log."""

from tandemmq.common.errors import Kind, TandemError


class SparkJobError(TandemError):
    """The root of them."""


class NotAStore(SparkJobError):
    """There is no commit log where one was looked for."""

    kind = Kind.NOT_FOUND
    remedy = "Name the storePathRootDir of a store, or a copy of its commitlog directory."


class UnequalFiles(SparkJobError):
    """Files of a commit log have different sizes, or names that fit no place in it."""

    kind = Kind.NOT_POSSIBLE


class UnreadableTopics(SparkJobError):
    """The topic table of a store is there and cannot be read."""

    kind = Kind.DAMAGED
    remedy = "Put it right, or work on a copy of the commitlog directory alone: then all messages count."


class MissingLog(SparkJobError):
    """A part of the log that was asked for is not there."""

    kind = Kind.DAMAGED


class TaskFailed(SparkJobError):
    """A task of a job failed, also when it was tried again."""


class BadJobOption(SparkJobError):
    """An option or argument that cannot be."""

    kind = Kind.INVALID


class StoreInUse(SparkJobError):
    """A running broker holds the directory, so its files cannot be exchanged behind its back."""

    kind = Kind.NOT_POSSIBLE


class StagingMismatch(SparkJobError):
    """A staging directory holds the work of another rebuild, or damaged work."""

    kind = Kind.NOT_POSSIBLE


class CheckFailed(SparkJobError):
    """What a rebuild has written is not what the log says: nothing is published."""

    kind = Kind.DAMAGED


class RebuildNotTakenOver(SparkJobError):
    """A running store does not take over what was rebuilt for it."""

    kind = Kind.NOT_POSSIBLE
