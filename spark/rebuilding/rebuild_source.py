"""Which log a rebuild reads, and how far: a directory at rest, or that of a running store."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandemmq.spark.errors import BadJobOption, RebuildNotTakenOver
from tandemmq.spark.reading.layout import StoreLayout, find_layout
from tandemmq.spark.reading.log_files import LogFile, identity_of, list_log_files, log_directory, without_unused
from tandemmq.spark.reading.running_store import is_directory_of
from tandemmq.spark.rebuilding.staging import NAME, StagingDirectory

if TYPE_CHECKING:
    from tandemmq.spark.rebuilding.rebuild_job import RebuildRequest

_INTERNAL_PORT = 9081
_ADOPT_SECONDS = 6 * 3600.0
"""The store answers when all is in place and on disk."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log to rebuild from. ``end``: None for all there is; ``identity``: what must be the same to go on with it."""

    files: list[LogFile]
    layout: StoreLayout
    identity: list[list[Any]]
    end: int | None = None


def look_at(request: "RebuildRequest") -> LogSource:
    """The log of a store that does not run. Raises NotAStore, UnequalFiles, BadJobOption."""
    if log_directory(request.root) == request.root:
        raise BadJobOption(
            f"{request.root} holds log files themselves, and no place for consume queues and index beside them.",
            remedy="Put the files into a folder commitlog, and name the folder above it.",
        )
    files = list_log_files(request.root)
    if request.publish:
        _refuse_other_file_system(request.root, request.staging or request.root / NAME)
    layout = find_layout(
        request.root,
        queue_file_size=request.consume_queue_file_size,
        index_slots=request.index_slots,
        index_entries=request.index_entries,
        delay_levels=request.delay_levels,
    )
    return LogSource(without_unused(files), layout, identity_of(files))


def _refuse_other_file_system(root: Path, staging: Path) -> None:
    """Files change their places by names, which only goes within a file system. Raises BadJobOption."""
    nearest = next(place for place in (staging, *staging.absolute().parents) if place.exists())
    for place in (root, root / "consumequeue"):
        if place.exists() and os.stat(place).st_dev != os.stat(nearest).st_dev:
            raise BadJobOption(
                f"{staging} is on another file system than {place}: what is rebuilt there cannot be put in place.",
                remedy="Leave the staging directory away, or name one beside the consume queues.",
            )


def ask_store(request: "RebuildRequest") -> LogSource:
    """The log of a running store, up to what its own dispatch has reached.

    Raises:
        BadJobOption: it has its files elsewhere, or other sizes than were given.
        ClientError: it does not answer.
    """
    from tandemmq.client import Identity, StoreClient

    assert request.running is not None
    with StoreClient(request.running, **Identity.from_environment().at(request.running).arguments()) as client:
        log = client.log()
    if not is_directory_of(request.root, log):
        raise BadJobOption(
            f"The store at {request.running} has its files in {log.root}, not in {request.root}.",
            remedy="Run the rebuild where the store's files are, and name its storePathRootDir.",
        )
    layout = StoreLayout(log.consume_queue_file_size, log.index_slots, log.index_entries, tuple(log.delay_levels_ms))
    given = (request.consume_queue_file_size, request.index_slots, request.index_entries, request.delay_levels)
    if any(value is not None for value in given):
        raise BadJobOption("Sizes and levels of a running store are its own: leave them away.")
    if request.index and not log.index_enabled:
        raise BadJobOption("This store keeps no index (messageIndexEnable=false): rebuild the queues only.")
    if request.staging is not None and request.staging.resolve().parent != request.root.resolve():
        raise BadJobOption(
            f"{request.staging} is not in {request.root}: a running store takes over what lies in its own directory.",
            remedy=f"Leave it away, or name {request.root / NAME} with an ending of your own.",
        )
    files = [file for file in list_log_files(request.root) if log.min_offset <= file.start < log.dispatched_offset]
    identity: list[list[Any]] = [["running", *[[file.start, os.stat(file.path).st_ino] for file in files[:1]]]]
    return LogSource(files, layout, identity, log.dispatched_offset)


def adopt(request: "RebuildRequest", staging: StagingDirectory) -> None:
    """Have the running store take the files over; it finishes the tail itself.

    Raises:
        RebuildNotTakenOver: it says why, and goes on with its present files.
    """
    import grpc

    from tandemmq.client import Identity
    from tandemmq.client.channels import open_channel
    from tandemmq.store.v1.derived_files_pb2 import AdoptRequest
    from tandemmq.store.v1.derived_files_pb2_grpc import DerivedFilesStub

    address = request.internal or f"{(request.running or '').rpartition(':')[0]}:{_INTERNAL_PORT}"
    with open_channel(address, **Identity.from_environment().at(address).arguments()) as channel:
        try:
            DerivedFilesStub(channel).Adopt(AdoptRequest(staging=staging.path.name), timeout=_ADOPT_SECONDS)
        except grpc.RpcError as error:
            raise RebuildNotTakenOver(
                f"The store at {address} does not take over what was rebuilt: {error.details() or error.code().name}",
                remedy=f"The result is in {staging.path}; nothing of the store's was changed.",
            ) from error
