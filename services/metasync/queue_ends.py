"""When a mastership begins: offsets that speak of messages which this node's store does not have are taken back.

A slave's offsets may be ahead of its log, because the two are copied apart; and a crash may lose the end of a log that
was consumed already. New messages would get the same queue offsets again, and consumers would leave them out.
"""

from typing import Any

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.log_output import get_log
from tandemmq.common.topic_names import SCHEDULE_TOPIC
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.offset_tables import topic_and_group
from tandemmq.metasync.tables import TableKind
from tandemmq.store.v1 import store_pb2, store_pb2_grpc

log = get_log(__name__)

ASK_SECONDS = 10.0


async def take_back(keeper: Keeper, store_address: str, dialer: Dialer) -> bool:
    """Compare all offsets with the ends of the store's queues; False if the store still makes some of them again.

    Taking back counts as a reset: no older commit undoes it. Offsets are read before the store is asked, so that a
    queue that grows meanwhile is no reason. A queue that the store does not name was never written to: it ends at 0.

    Raises:
        AioRpcError: the store cannot be asked.
        DocumentNotSaved: as it says.
    """
    offsets, delays = dict(keeper.offsets.entries), dict(keeper.delays.entries)
    ends = await _queue_ends(store_address, dialer)
    if ends is None:
        return False
    changed = set()
    for key, entry in offsets.items():
        queues = ends.get(topic_and_group(key)[0], {})
        for queue, offset in entry.offsets.items():
            end = queues.get(queue, 0)
            if offset > end and keeper.offsets.entries.get(key) is entry:
                log.warning("offset taken back", key=key, queue=queue, offset=offset, queue_end=end)
                keeper.offsets.reset(key, queue, end)
                entry = keeper.offsets.entries[key]
                changed.add(key)
    queues = ends.get(SCHEDULE_TOPIC, {})
    levels = {level for level, offset in delays.items() if offset > queues.get(int(level) - 1, 0)}
    for level in levels:
        keeper.delays.put(int(level), queues.get(int(level) - 1, 0), reset=True)
    if changed:
        keeper.offsets.changed(keeper.stamp())
        keeper.changed(TableKind.CONSUMER_OFFSETS, changed)
        await keeper.flush(TableKind.CONSUMER_OFFSETS)
    if levels:
        keeper.delays.changed(keeper.stamp())
        keeper.changed(TableKind.DELAY_OFFSETS, levels)
        await keeper.flush(TableKind.DELAY_OFFSETS)
    return True


async def _queue_ends(address: str, dialer: Dialer) -> dict[str, dict[int, int]] | None:
    """Topic -> queue -> its next offset; None while queues are being rebuilt."""
    async with dialer.channel(address) as channel:
        stub: Any = store_pb2_grpc.StoreStub(channel)
        answer = await stub.ListQueues(store_pb2.ListQueuesRequest(), timeout=ASK_SECONDS)
    if any(queue.rebuilding for topic in answer.topics for queue in topic.queues):
        return None
    # Not the end that consumers see: one that has seen more, before the master was started again, is no reason.
    return {
        topic.topic: {queue.queue_id: max(queue.next_offset, queue.max_offset) for queue in topic.queues}
        for topic in answer.topics
    }
