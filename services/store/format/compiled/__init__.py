"""The compiled twins of the walker, the index functions and the batch writer: numba, no C compiler.

Importing this package's modules costs about 120 MB of memory and half a second, so only functions that need one
import it (walker.compiled_walker, batch.compiled_batch_writer). Machine code is kept in ``__pycache__`` (or where
NUMBA_CACHE_DIR says); ``warm`` fills it. An image has the kernels in a shared object instead, and no numba.

    jit.py        what kernels are made with: one of the next two
    numba_jit.py  compiled at their first call and cached, with ISA-L's CRC among them
    prebuilt.py   taken from a shared object, which tools/prebuild_kernels.py makes
    memory.py     big-endian loads and stores at an address
    text.py       Java's hash over UTF-8
    records.py    the check of one record and what is read from it
    walk.py       kernels of the walker        walker.py   their Python side
    index.py      kernels of the index
    keys.py       the index in two steps, for rebuilding it in parallel
    columns.py    kernels that gather fields of records
    record_columns.py  those fields as NumPy arrays, laid out as Arrow wants them
    batch.py      kernels and Python side of the batch writer

Kernels take addresses, not arrays: no bounds are checked but those the code checks, and one compiled version fits every
kind of buffer. They release the GIL. The rule for changes: change the readable twin first, then run the tests that
compare both.
"""


def warm() -> None:
    """Compile everything once, so that no process has to afterwards."""
    from tandemmq.store.format.batch import encode_client_batch
    from tandemmq.store.format.compiled.batch import CompiledBatchWriter
    from tandemmq.store.format.compiled.index import entries_before, rebuild_chains
    from tandemmq.store.format.compiled.walker import CompiledWalker
    from tandemmq.store.format.host import ANY_HOST
    from tandemmq.store.format.index_layout import file_size

    writer = CompiledBatchWriter()
    log = bytearray(256)
    blob = encode_client_batch([(0, b"body", b"KEYS\x01a\x02")])
    writer.measure_plain(blob, 5, 0, False, 4)
    writer.write(
        blob,
        log,
        0,
        topic=b"topic",
        queue_id=0,
        queue_offset=0,
        physical_offset=0,
        sys_flag=0,
        born_timestamp=0,
        born_host=ANY_HOST.packed,
        store_timestamp=0,
        store_host=ANY_HOST.packed,
        reconsume_times=0,
    )
    walker = CompiledWalker()
    walk = walker.walk(log, 0, len(log), 0, check_crc=True)
    walk.runs()
    walk.rows()
    walker.resync(log, 0, len(log), 0)
    walker.verify(log, 0, len(log), 0)
    index = bytearray(file_size(2, 3))
    walk.index_into(index, 2, 3)
    rebuild_chains(index, 2, 3, entries_before(index, 2, 3, len(log)))
