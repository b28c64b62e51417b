"""What a message store can be told: the settings of the log layer.

The names are RocketMQ's (``MessageStoreConfig``) in snake case; defaults are RocketMQ's too, and stand here only. What
the log layer takes as it is given is in `LogSettings`, a part of the store's settings class. That one reads files and
environment, and makes a `StoreConfig`; tests make one by hand, with small sizes.
"""

from dataclasses import dataclass, field
from pathlib import Path

from tandemmq.common.settings.settings import setting
from tandemmq.store.format.unit import DELAY_LEVELS_MS

SYNC_FLUSH = "SYNC_FLUSH"
ASYNC_FLUSH = "ASYNC_FLUSH"


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """The settings that the log layer takes as they are given. A new one is added here, and nowhere else."""

    # -- files ------------------------------------------------------------------------------------------------------
    mapped_file_size_commit_log: int = setting(1 << 30, "Size of a commit log file.", unit="bytes", low=4 << 10)
    mapped_file_size_consume_queue: int = setting(
        6_000_000, "Size of a consume queue file, 20 bytes a message.", unit="bytes", low=20
    )
    max_hash_slot_num: int = setting(5_000_000, "Hash slots of an index file, 4 bytes each.", low=1)
    max_index_num: int = setting(20_000_000, "Entries of an index file, 20 bytes each.", low=2)
    message_index_enable: bool = setting(True, "Index messages by UNIQ_KEY and KEYS, for queries.")
    prefault_bytes: int = setting(
        8 << 20,
        "Ours: how much of the log file is made resident ahead of the append position, where messages are copied into "
        "its mapping: with ASYNC_FLUSH.",
        unit="bytes",
        low=0,
    )

    # -- messages ---------------------------------------------------------------------------------------------------
    max_message_size: int = setting(4 << 20, "Largest body.", unit="bytes", low=1)
    enabled_append_prop_crc: bool = setting(
        False,
        "Append a checksum over the whole record as its last property.",
        name="enabledAppendPropCRC",
    )
    force_verify_prop_crc: bool = setting(
        False, "Recovery verifies that checksum instead of the body's.", name="forceVerifyPropCRC"
    )
    check_crc_on_recover: bool = setting(
        True,
        "Recovery verifies the checksum of every body, and that no record is cut. Without that, half a record that a "
        "killed process has left may be taken for a message.",
        name="checkCRCOnRecover",
    )

    # -- flush ------------------------------------------------------------------------------------------------------
    flush_interval_commit_log: int = setting(500, "ASYNC_FLUSH: how often the log is flushed.", unit="ms", low=1)
    flush_commit_log_least_pages: int = setting(4, "... if this many 4 KiB pages are dirty.", low=0)
    flush_commit_log_thorough_interval: int = setting(10_000, "... and so often whatever there is.", unit="ms", low=1)
    sync_flush_timeout: int = setting(5_000, "SYNC_FLUSH: answer FLUSH_DISK_TIMEOUT after this long.", unit="ms", low=1)
    flush_interval_consume_queue: int = setting(1_000, "How often consume queues are flushed.", unit="ms", low=1)
    flush_consume_queue_least_pages: int = setting(2, "... those with this many dirty pages.", low=0)
    flush_consume_queue_thorough_interval: int = setting(
        60_000, "... and so often all of them, with a checkpoint.", unit="ms", low=1
    )
    checkpoint_log_bytes: int = setting(
        256 << 20,
        "Ours: a checkpoint too after this much log; it bounds recovery.",
        unit="bytes",
        low=4 << 10,
    )

    # -- reading ----------------------------------------------------------------------------------------------------
    read_un_committed: bool = setting(False, "SYNC_MASTER: consumers see messages that too few replicas have, too.")

    # -- retention --------------------------------------------------------------------------------------------------
    file_reserved_time: int = setting(72, "Log files expire when their last message is so old.", unit="hours", low=0)
    clean_resource_interval: int = setting(10_000, "How often the store looks for expired files.", unit="ms", low=1)
    delete_file_batch_max: int = setting(10, "Files removed at a time.", low=1)
    disk_max_used_space_ratio: int = setting(75, "Above: expired files go at any hour.", unit="%", low=10, high=95)
    disk_space_clean_forcibly_ratio: int = setting(85, "Above: files go before they expire.", unit="%", low=30, high=85)
    disk_space_warning_level_ratio: int = setting(90, "Above: no messages are taken.", unit="%", low=35, high=100)
    clean_file_forcibly_enable: bool = setting(True, "Whether files may go before they expire.")

    # -- recovery ---------------------------------------------------------------------------------------------------
    scrub_bytes_per_second: int = setting(8 << 20, "Ours: speed of the scrub of the log; 0: none.", unit="bytes", low=0)
    verify_whole_log_on_start: bool = setting(False, "Ours: read and check the whole log at start.")


@dataclass(frozen=True)
class StoreConfig(LogSettings):
    """Settings of one store directory; beside `LogSettings` those that people give in other words.

    Sizes are bytes, times milliseconds unless the name or comment says otherwise.
    """

    store_path_root_dir: Path
    broker_role: str = "ASYNC_MASTER"
    message_delay_levels: tuple[int, ...] = field(default=DELAY_LEVELS_MS)
    flush_disk_type: str = ASYNC_FLUSH
    delete_when: tuple[int, ...] = (4,)  # hours of the day, local time
    # Ours: "auto" loads the compiled walker when there is work for it, "always" at start, "never" not at all.
    compiled_walker: str = "auto"

    @property
    def sync_flush(self) -> bool:
        """Whether a send is acknowledged, and its message visible, only when it is on disk."""
        return self.flush_disk_type == SYNC_FLUSH

    @property
    def commit_log_dir(self) -> Path:
        """Directory of the commit log's files."""
        return self.store_path_root_dir / "commitlog"

    @property
    def consume_queue_dir(self) -> Path:
        """Directory of the consume queues: ``<topic>/<queueId>/<file>``."""
        return self.store_path_root_dir / "consumequeue"

    @property
    def index_dir(self) -> Path:
        """Directory of the index files."""
        return self.store_path_root_dir / "index"

    @property
    def broken_dir(self) -> Path:
        """Directory of what recovery cut off, kept for people to look at."""
        return self.store_path_root_dir / "broken"
