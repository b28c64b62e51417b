"""`tandem replica reseed`: lets a slave begin anew, when it can no longer follow with the log that it has."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.talk.failures import CommandFailed, NotThere
from tandemmq.cli.talk.moments import show_bytes
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output
from tandemmq.common.errors import Kind

if TYPE_CHECKING:
    from tandemmq.store.log.replica.mastership import Mastership

_LOG = ("commitlog", "consumequeue", "index", "checkpoint", "abort", "broken")
"""What belongs to a log: files and directories of RocketMQ's names, and ours for what recovery cut off."""

_OWN = "tandem."
_STAYS = ("tandem.epoch", "tandem.group", "tandem.topics", "tandem.groups", "tandem.metasync.lock")
"""Of our own files: whose directory it is, what its master had, the tables, and the lock of metasync, which may run."""

_OF_REPLICAS = "tandem.replica"
"""Made by a store when the first bytes of a master come."""


class IsMaster(CommandFailed):
    """The directory may be a master's, whose messages are nowhere else."""

    kind = Kind.NOT_POSSIBLE


def reseed(
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="The slave's store directory.")],
    yes_it_was_a_master: Annotated[
        bool,
        typer.Option(
            "--yes-it-was-a-master",
            help="Do it although nothing says that this directory is a slave's: messages that only this node has are "
            "then in no running store any more.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Let a slave take its master's whole history anew. Its store must not be running; nothing is deleted.

    For a slave whose log differs from its master's (a fork), or whose master no longer has what comes next. Log, queues
    and index are moved into DIR/reseeded-TIME; topics, groups and offsets (DIR/config) stay. The directory is a slave's
    from then on, whatever brokerRole says. When the services run again the history comes from the master; remove the
    old files when you no longer want to look at them.

    With --json: one document, {"directory", "moved_to", "moved": [...], "bytes", "epoch"}.
    """
    from tandemmq.store.log.edges.disk import LocalDisk
    from tandemmq.store.log.marks.lock import StoreLock
    from tandemmq.store.log.replica.mastership import note_end_of_log

    if not any((data / name).exists() for name in _LOG):  # one of them is enough: the log itself may be what is lost
        raise NotThere(f"{data} is no store directory: there is nothing of a log in it")
    disk = LocalDisk()
    lock = StoreLock(data, disk)
    try:
        mastership = _read_mastership(data, yes_it_was_a_master)
        size = sum(_bytes_on_disk(data / name) for name in _LOG)
        aside = data / f"reseeded-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        mastership.demote(
            max(mastership.epoch, mastership.fenced_by)
        )  # first: a directory without a log is no master's
        note_end_of_log(data, disk)  # then: an empty log does not mean that there was nothing
        moved = _move(data, aside)
        disk.sync_dir(aside)
        disk.sync_dir(data)
    finally:
        lock.release()
    output = Output(as_json=as_json)
    if as_json:
        document = {"directory": str(data), "moved_to": str(aside), "moved": moved, "bytes": size}
        output.document({**document, "epoch": mastership.epoch})
        return
    output.say(f"Moved to {aside}: {', '.join(moved)} ({show_bytes(size)}).")
    output.say("When its services run again, this slave takes the whole history from its master.")
    output.say(f"Remove the old files when you no longer need them: rm -r {aside}")


def _read_mastership(data: Path, was_a_master: bool) -> "Mastership":
    """Raises IsMaster; UnusableDirectory where tandem.epoch cannot be read."""
    from tandemmq.common.settings.broker_role import BrokerRole
    from tandemmq.store.log.edges.disk import LocalDisk
    from tandemmq.store.log.replica.mastership import Mastership

    mastership = Mastership(data, LocalDisk(), BrokerRole.SLAVE)
    has_followed = (data / _OF_REPLICAS).exists() or bool(mastership.store_id)  # only a slave's store names itself
    if not has_followed:
        mastership = Mastership(data, LocalDisk(), BrokerRole.ASYNC_MASTER)
    if mastership.is_slave or was_a_master:
        return mastership
    if mastership.role is mastership.configured and not has_followed:
        reason = f"{data} has never followed a master, as far as its files say"
    else:
        reason = f"{data} is a master's directory: {mastership.role} in epoch {mastership.epoch}"
    raise IsMaster(
        reason, remedy="make sure that another node is the master now, then say so with --yes-it-was-a-master"
    )


def _move(data: Path, aside: Path) -> list[str]:
    """Move what belongs to the log; gives the names. The commit log goes last: until then this can be done again."""
    aside.mkdir()
    moved = []
    for name in _names(data):
        os.rename(data / name, aside / name)
        moved.append(name)
    return moved


def _names(data: Path) -> Iterator[str]:
    present = {path.name for path in data.iterdir()}
    own = sorted(name for name in present if name.startswith(_OWN) and name not in _STAYS)
    yield from (name for name in (*own, *reversed(_LOG)) if name in present)


def _bytes_on_disk(path: Path) -> int:
    if path.is_file():
        return path.stat().st_blocks * 512
    return sum(_bytes_on_disk(one) for one in path.iterdir()) if path.is_dir() else 0
