"""What `tandem send` can ask for beside storing: a later delivery, an order, a transaction."""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

import typer

from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.cli.talk.moments import parse_duration, parse_moment
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.client import Outgoing, StoreClient
    from tandemmq.store.v1.store_pb2 import SendReceipt

PRODUCERS = "tandem-cli"
"""The group of producers that these transactions belong to."""


def special_properties(delay: str, at: str, order_key: str) -> dict[str, str]:
    """The properties, as RocketMQ names them. Raises BadMoment, BadParameter."""
    if delay and at:
        raise typer.BadParameter("give --delay or --at, not both", param_hint="--at")
    named: dict[str, str] = {}
    if delay:
        named["TIMER_DELAY_MS"] = str(parse_duration(delay))
    if at:
        if at[-1] in "smhd":
            raise typer.BadParameter(f"{at!r} is a duration: say --delay {at}", param_hint="--at")
        named["TIMER_DELIVER_MS"] = str(parse_moment(at))
    if order_key:
        named["__SHARDINGKEY"] = order_key
    return named


def send_transaction(client: "StoreClient", output: Output, messages: Iterable["Outgoing"], batch: int) -> None:
    """Store half messages, and commit them when all are there; roll back if not. Raises CommandFailed."""
    from dataclasses import replace

    halves = (replace(one, properties={**one.properties, "TRAN_MSG": "true", "PGROUP": PRODUCERS}) for one in messages)
    stored: list[tuple[str, SendReceipt]] = []
    try:
        while piece := list(islice(halves, batch)):
            receipts = client.send_batch(piece)
            stored += [(one.topic, receipt) for one, receipt in zip(piece, receipts, strict=True) if receipt.message_id]
            if refused := [receipt for receipt in receipts if not receipt.message_id]:
                raise CommandFailed(f"{len(refused):,} messages were not stored, so none is sent: {refused[0].reason}")
    except BaseException:
        _end(client, stored, commit=False)
        raise
    _end(client, stored, commit=True)
    if output.as_json:
        for _, receipt in stored:
            output.line({"status": "COMMITTED", "unique_key": receipt.unique_key, "queue_id": receipt.queue_id})
    else:
        output.say(f"COMMITTED  {len(stored):,} messages")


def _end(client: "StoreClient", stored: Iterable[tuple[str, "SendReceipt"]], *, commit: bool) -> None:
    from tandemmq.delivery.v1 import delivery_pb2

    for topic, receipt in stored:
        client.delivery.EndTransaction(
            delivery_pb2.EndTransactionRequest(
                topic=topic,
                handle=receipt.transaction_handle or receipt.unique_key,
                ending=delivery_pb2.COMMIT if commit else delivery_pb2.ROLLBACK,
                group=PRODUCERS,
            ),
            timeout=client.timeout,
        )
