"""Compiles the log walker, the batch writer and the index tools once, by using them; numba keeps the machine code.

Run by `make venv`, so that the first store that has much to recover does not wait for the compiler.
"""

from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.index_layout import file_size
from tandemmq.store.format.message import Message
from tandemmq.store.format.properties import encode
from tandemmq.store.format.record import encode_record
from tandemmq.store.log.segments.walkers import Walkers

_SLOTS, _ENTRIES = 8, 32


def main() -> None:
    """Calls every compiled function with arguments of the types that a store uses."""
    walkers = Walkers("always")
    walker = walkers.load()
    properties = encode({"KEYS": "a b", "TAGS": "t", "UNIQ_KEY": "u"})
    message = Message(topic="compile", queue_id=0, body=b"body", properties=properties)
    log = bytearray(encode_record(message, 0, 0, 1))
    walker.walk(log, 0, len(log), 0, check_crc=False)
    walk = walker.walk(log, 0, len(log), 0, check_crc=True)
    walk.runs()
    walk.rows()
    walker.resync(log, 0, len(log), 0)
    walker.verify(log, 0, len(log), 0)

    index = bytearray(file_size(_SLOTS, _ENTRIES))
    walk.index_into(index, _SLOTS, _ENTRIES)
    tools = walkers.index_tools(_ENTRIES)
    tools.entries_before(index, _SLOTS, _ENTRIES, len(log))
    tools.rebuild_chains(index, _SLOTS, _ENTRIES, 2)

    _compile_for_spark()
    writer = walkers.batch_writer()
    topic, host = b"compile", bytes(8)
    batch = encode_client_batch([(0, b"body", properties)])
    for append_crc in (False, True):
        _, total_size = writer.measure(batch, len(topic), 0, append_crc)
        writer.write(
            batch,
            bytearray(total_size),
            0,
            topic=topic,
            queue_id=0,
            queue_offset=0,
            physical_offset=0,
            sys_flag=0,
            born_timestamp=1,
            born_host=host,
            store_timestamp=1,
            store_host=host,
            reconsume_times=0,
            append_crc=append_crc,
        )


def _compile_for_spark() -> None:
    """What tasks of Spark do with a walk, where the extra for it is installed."""
    try:
        from tandemmq.spark.running.warming import warm
    except ImportError:
        return
    warm()


if __name__ == "__main__":
    main()
