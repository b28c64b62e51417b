"""What a message store can be told: the settings of the log layer as one plain value.

The names are RocketMQ's (``MessageStoreConfig``) in snake case; defaults are RocketMQ's too, and stand here only. The
store's settings class reads files and environment and makes one of these; tests make them by hand, with small sizes.
"""

from dataclasses import dataclass, field
from pathlib import Path

from tandemmq.store.format.unit import DELAY_LEVELS_MS

SYNC_FLUSH = "SYNC_FLUSH"
ASYNC_FLUSH = "ASYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Settings of one store directory.

    Sizes are bytes, times milliseconds unless the name or comment says otherwise.
    """

    store_path_root_dir: Path
    broker_role: str = "ASYNC_MASTER"
    read_un_committed: bool = False  # consumers of a synchronous master see what its replicas may not have
    mapped_file_size_commit_log: int = 1 << 30
    mapped_file_size_consume_queue: int = 6_000_000
    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    message_index_enable: bool = True
    max_message_size: int = 4 << 20
    enabled_append_prop_crc: bool = False
    force_verify_prop_crc: bool = False
    check_crc_on_recover: bool = True
    message_delay_levels: tuple[int, ...] = field(default=DELAY_LEVELS_MS)

    flush_disk_type: str = ASYNC_FLUSH
    flush_interval_commit_log: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval: int = 10_000
    sync_flush_timeout: int = 5_000
    flush_interval_consume_queue: int = 1_000
    flush_consume_queue_least_pages: int = 2
    flush_consume_queue_thorough_interval: int = 60_000
    # Ours: a checkpoint is also taken when so many log bytes lie after the last one; it bounds recovery.
    checkpoint_log_bytes: int = 256 << 20

    delete_when: tuple[int, ...] = (4,)  # hours of the day, local time
    file_reserved_time: int = 72  # hours
    clean_resource_interval: int = 10_000
    delete_file_batch_max: int = 10
    disk_max_used_space_ratio: int = 75  # percent
    disk_space_clean_forcibly_ratio: int = 85  # percent
    disk_space_warning_level_ratio: int = 90  # percent
    clean_file_forcibly_enable: bool = True

    # Ours: bytes of the log file that are made resident ahead of the append position.
    prefault_bytes: int = 8 << 20
    # Ours: "auto" loads the compiled walker when there is work for it, "always" at start, "never" not at all.
    compiled_walker: str = "auto"
    # Ours: so fast is the whole log compared with its checksums, queues and index, again and again; 0: never.
    scrub_bytes_per_second: int = 8 << 20
    # Ours: read and check the whole log at start, not only what lies after the checkpoint (trap T27).
    verify_whole_log_on_start: bool = False

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
