"""What `tandem send` can ask for beside storing: a later delivery, an order, a transaction."""

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import typer

from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.cli.talk.moments import parse_duration, parse_moment_ahead, show_moment
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.client import Outgoing, StoreClient
    from tandemmq.store.v1.store_pb2 import SendReceipt

PRODUCERS = "tandem-cli"
"""The group of producers that these transactions belong to."""

_NOW_MS = 1000
"""A time that is past by less was meant as now."""


def special_properties(delay: str, at: str, order_key: str) -> dict[str, str]:
    """The properties, as RocketMQ names them. Raises BadMoment, BadParameter."""
    if delay and at:
        raise typer.BadParameter("give --delay or --at, not both", param_hint="--at")
    named: dict[str, str] = {}
    if delay:
        named["TIMER_DELAY_MS"] = str(parse_duration(delay))
    if at:
        named["TIMER_DELIVER_MS"] = str(parse_moment_ahead(at))
    if order_key:
        named["__SHARDINGKEY"] = order_key
    return named


def remark_on_times(output: Output, properties: Mapping[str, str]) -> None:
    """That a time to deliver at is past, which is allowed and means now."""
    deliver_ms = int(properties.get("TIMER_DELIVER_MS", 0))
    if deliver_ms and deliver_ms < time.time() * 1000 - _NOW_MS:
        output.remark(f"{show_moment(deliver_ms)} is past: consumers get it at once.")


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
