"""The on-disk format of a store: bytes in, values out. No files, no clocks, no state; everything big-endian.

It is Apache RocketMQ's format, byte for byte: a Java broker reads what this package writes, and the reverse. A store
directory holds

    commitlog/<start offset, 20 digits>                     records of all topics in order of arrival
    consumequeue/<topic>/<queue id>/<start, 20 digits>      per queue: where its n-th record is
    index/<yyyyMMddHHmmssSSS>                               from key to records
    checkpoint                                              how far the files are safe

**Record** (record.py). b and s are 8 bytes for an IPv4 host, 20 for IPv6, by the values 16 and 32 of SYSFLAG.

    offset     field                  type        v1                      v2
    0          TOTALSIZE              int         75 + b + s + body + topic + properties, + 1 in v2
    4          MAGICCODE              int         DAA320A7                DAA320AB
    8          BODYCRC                int         CRC-32 of the body & 7FFFFFFF
    12         QUEUEID                int
    16         FLAG                   int         the user's
    20         QUEUEOFFSET            long        index in the consume queue
    28         PHYSICALOFFSET         long        where this record is
    36         SYSFLAG                int         see sysflag.py
    40         BORNTIMESTAMP          long        ms, producer
    48         BORNHOST               b           address, port (int)
    48+b       STORETIMESTAMP         long        ms, broker
    56+b       STOREHOST              s           address, port (int)
    56+b+s     RECONSUMETIMES         int
    60+b+s     PREPAREDTRANSACTION…   long        physical offset of the half message
    68+b+s     BODYLENGTH, BODY       int, bytes
    …          TOPICLENGTH, TOPIC     …, UTF-8    byte, at most 127       short
    …          PROPERTIESLENGTH, …    short, …    name 01 value 02 …, at most 32,767 (properties.py)

**BLANK** ends a log file: int bytes left in the file, int CBD43194. A record never crosses files and always leaves room
for these 8 bytes.

**Consume queue unit** (unit.py), 20 bytes: long physical offset, int TOTALSIZE, long tags code: Java's hash of TAGS, or
the delivery time of a delayed message. (0, 7FFFFFFF, 0) fills the place of units that never were.

**Index file** (index_layout.py): 40 bytes header; slots × int; entries × (int key hash, long physical offset, int
seconds since the first entry, int previous entry of the slot). Entries are numbered from 1; the key is ``topic#key``.

**Checkpoint** (checkpoint.py), 4,096 bytes: long store time of the commit log, of the consume queues, of the index that
are safe; long master flushed offset; long confirmed offset; zeros.

Records and what is in them::

    record.py          reading one              record_encoder.py   making one
    message.py         a message on its way in  record_identity.py  whether it is the one that a unit names
    record_fields.py   single fields of one that lies somewhere
    sysflag.py         the SYSFLAG bits         properties.py       the properties string
    batch.py           many in one body         host.py             an address
    message_id.py      the two ids              crc.py, java.py     checksums, Java's view of text
    intact.py          whether it is what was written there
    walker.py          a log file, record by record: the interface
    python_walker.py   ... to read; compiled/ is its fast twin, core_missing.py where that is not built
    arrival.py         a log that comes in stretches of any length
    buffers.py         what may hold the bytes

Files of RocketMQ::

    unit.py            consume queues           index_layout.py     the index
    checkpoint.py      `checkpoint`

Files of ours::

    naturals.py        numbers in our own documents, which are JSON with a checksum (common/documents/sealed.py)
    manifest.py        `tandem.manifest`        staged.py           `tandem.rebuilt`
    audit_result.py    `tandem.audit`           replica_stretch.py  `tandem.replica`
    log_reached.py     `tandem.end`
    offset_ranges.py   sets of queue offsets

Errors are FormatError (errors.py) and below.
"""
