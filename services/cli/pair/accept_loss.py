"""`tandem data accept-loss`: lets a store start whose newest log files are gone for good."""

from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.processes.start_settings import read_settings
from tandemmq.cli.talk.failures import FAILED, NotThere
from tandemmq.cli.talk.options import Config, Data, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.store.log.recovery.accepted_loss import AcceptedLoss

_OF_A_STORE = ("commitlog", "consumequeue", "checkpoint", "tandem.manifest")
"""One of them is there where a store has been, even if the whole log is what is lost."""


def accept_loss(
    config: Config = None,
    data: Data = None,
    overrides: Set = None,
    yes_lose_messages: Annotated[
        bool, typer.Option("--yes-lose-messages", help="Do it. Without this it only says what would be lost.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Let a store go on without log files that are gone for good. Its store must not be running.

    A store whose newest log files are missing does not start: it would give the offsets of lost messages out again.
    Look for the files first: a volume that is not mounted, a backup, a slave, which can be promoted instead. Where
    there is none, this makes an empty log file after the place that the log had reached, with the store's settings
    (--config, --data, --set as for tandem serve store). The next start goes on there: offsets count on, and
    what is lost is reported as damage. Should the files turn up later, put them back: the next start takes them up.

    Exit code 1 without --yes-lose-messages, and where nothing is missing.

    With --json: one document, {"directory", "begin_offset", "end_offset", "numbers_known", "accepted"}.
    """
    from tandemmq.store.log.edges.disk import LocalDisk
    from tandemmq.store.log.recovery.accepted_loss import accept_loss as accept
    from tandemmq.store.log.recovery.accepted_loss import find_loss

    settings = read_settings(config, data, overrides).store_config()
    root = settings.store_path_root_dir
    if not any((root / name).exists() for name in _OF_A_STORE):
        raise NotThere(f"{root} is no store directory: it has none of {', '.join(_OF_A_STORE)}")
    loss = (accept if yes_lose_messages else find_loss)(settings, LocalDisk())
    output = Output(as_json=as_json)
    if as_json:
        output.document(
            {
                "directory": str(settings.store_path_root_dir),
                "begin_offset": loss.begin,
                "end_offset": loss.end,
                "numbers_known": loss.numbers_known,
                "accepted": yes_lose_messages,
            }
        )
    else:
        _say(output, loss, done=yes_lose_messages)
    if not yes_lose_messages:
        raise typer.Exit(FAILED)


def _say(output: Output, loss: "AcceptedLoss", *, done: bool) -> None:
    output.say(f"Missing: log offsets {loss.begin:,} to {loss.end:,}. The messages in there are lost on this node.")
    if not loss.numbers_known:
        output.say("Nothing knows all queue offsets that were given there: some may be given again, to other messages.")
    if done:
        output.say(f"The next start goes on at log offset {loss.end:,}.")
    else:
        output.say("Nothing was changed. To go on without them: the same again with --yes-lose-messages.")
