"""Pulls with a filter over properties: the records are looked into, some in each turn of the loop."""

from dataclasses import replace

from tandemmq.common.slices import Slices
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.long_poll import Room
from tandemmq.store.broker.pulled import PullAnswer, PullStatus, Wanted
from tandemmq.store.delivery.receiving.selection import PropertyFilter
from tandemmq.store.format.record import decode_record, split_records

MOST_A_LOOK = 256
"""Records that are looked into before those that are wanted are given; a turn looks at them for a millisecond."""
MOST_LOOKS = 32
"""Looks that find nothing; then the client is told how far it has come."""


async def filtered(
    broker: Broker, wanted: Wanted, wants: PropertyFilter, seconds: float, room: Room | None
) -> PullAnswer:
    """As `Broker.pull`, with those messages that the filter wants."""
    timers = broker.store.timers
    deadline = timers.time() + seconds
    looks = 0
    while True:
        left = max(deadline - timers.time(), 0) if seconds else 0
        all_of = replace(wanted, max_messages=min(wanted.max_messages, MOST_A_LOOK))
        pulled = await broker.pull(all_of, left, room)
        if pulled.status is not PullStatus.FOUND:
            return pulled
        chosen, slices = [], Slices(timers)
        for data in split_records(pulled.records):
            if wants.matches(decode_record(data, verify=False).properties):
                chosen.append(data)
            await slices.pause()
        if chosen:
            return replace(pulled, count=len(chosen), records=b"".join(chosen))
        looks += 1
        if looks == MOST_LOOKS:
            break
        wanted = replace(wanted, offset=pulled.next_offset)
        await timers.sleep(0)
    return replace(pulled, status=PullStatus.NO_MATCHED_MESSAGE, count=0, records=b"")
