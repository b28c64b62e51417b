"""What can go wrong with jobs over a commit log."""

from tandemmq.common.errors import TandemError


class SparkJobError(TandemError):
    """The root of them."""


class NotAStore(SparkJobError):
    """There is no commit log where one was looked for."""

    grpc_code = "NOT_FOUND"
    remedy = "Name the storePathRootDir of a store, or a copy of its commitlog directory."


class UnequalFiles(SparkJobError):
    """Files of a commit log have different sizes, or names that fit no place in it."""

    grpc_code = "FAILED_PRECONDITION"


class MissingLog(SparkJobError):
    """A part of the log that was asked for is not there."""

    grpc_code = "DATA_LOSS"


class TaskFailed(SparkJobError):
    """A task of a job failed, also when it was tried again."""


class BadJobOption(SparkJobError):
    """An option or argument that cannot be."""

    grpc_code = "INVALID_ARGUMENT"


class StoreInUse(SparkJobError):
    """A running broker holds the directory, so its files cannot be exchanged behind its back."""

    grpc_code = "FAILED_PRECONDITION"


class StagingMismatch(SparkJobError):
    """A staging directory holds the work of another rebuild, or damaged work."""

    grpc_code = "FAILED_PRECONDITION"


class CheckFailed(SparkJobError):
    """What a rebuild has written is not what the log says: nothing is published."""

    grpc_code = "DATA_LOSS"


class AdoptionRefused(SparkJobError):
    """A running store does not take over what was rebuilt for it."""

    grpc_code = "FAILED_PRECONDITION"
