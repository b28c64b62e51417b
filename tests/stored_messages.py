"""Records as the messages that they were made of."""

from tandemmq.store.format.record import Message, Record


def message_of(record: Record) -> Message:
    """What was stored; `encode_record` makes the same bytes of it again, but for outdated IPv6 bits."""
    return Message(
        topic=record.topic,
        queue_id=record.queue_id,
        body=record.body,
        properties=record.properties_bytes,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
    )
