"""The SYSFLAG bits of a record. Source: MessageSysFlag.

bit 0      1     body is compressed
bit 1      2     multi-tag topic
bits 2-3   0, 4, 8, 12   transaction: none, prepared, commit, rollback
bit 4      16    BORNHOST is 16 + 4 bytes (IPv6)
bit 5      32    STOREHOST is 16 + 4 bytes (IPv6)
bit 6      64    batch that the consumer must unwrap
bit 7      128   inner batch
bits 8-10  compression: 0 or 0x300 zlib, 0x100 LZ4, 0x200 Zstandard
"""

COMPRESSED = 0x1
MULTI_TAGS = 0x2
TRANSACTION_NONE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
TRANSACTION_MASK = 0xC
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
HOSTS_V6 = BORN_HOST_V6 | STORE_HOST_V6
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80
COMPRESSION_MASK = 0x700
COMPRESSION_LZ4 = 0x100
COMPRESSION_ZSTD = 0x200
COMPRESSION_ZLIB = 0x300


def is_indexed_in_queue(sys_flag: int) -> bool:
    """Whether the record gets a consume queue unit and uses up a queue offset: transaction type none or commit.

    Bits 2 and 3 count alone here: prepared has bit 2 only and rollback both, so bit 2 decides.
    """
    return not sys_flag & TRANSACTION_PREPARED


def is_indexed_by_key(sys_flag: int) -> bool:
    """Whether the record's keys go into the index: all but rollbacks (prepared ones do, unlike in queues)."""
    return sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK


def with_hosts(sys_flag: int, *, born_v6: bool, store_v6: bool) -> int:
    """``sys_flag`` with both IPv6 bits as the hosts are, whatever they were (trap T13)."""
    return sys_flag & ~HOSTS_V6 | (BORN_HOST_V6 if born_v6 else 0) | (STORE_HOST_V6 if store_v6 else 0)
