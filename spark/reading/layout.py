"""How a store lays out its files: the sizes and times that consume queues and index depend on.

They are settings of the broker and stand in no file, but for what the sizes of existing files tell.
"""

from dataclasses import dataclass
from pathlib import Path

from tandemmq.spark.errors import BadJobOption
from tandemmq.store.format import index_layout
from tandemmq.store.format.unit import DELAY_LEVELS_MS, UNIT_SIZE

DEFAULT_QUEUE_FILE_SIZE = 300_000 * UNIT_SIZE
DEFAULT_SLOTS = 5_000_000
DEFAULT_ENTRIES = 20_000_000


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """``queue_file_size``: bytes of a consume queue file (mappedFileSizeConsumeQueue, rounded down to whole units).

    ``index_slots``, ``index_entries``: maxHashSlotNum and maxIndexNum. ``delay_levels``: messageDelayLevel in ms.
    """

    queue_file_size: int = DEFAULT_QUEUE_FILE_SIZE
    index_slots: int = DEFAULT_SLOTS
    index_entries: int = DEFAULT_ENTRIES
    delay_levels: tuple[int, ...] = DELAY_LEVELS_MS

    @property
    def units_per_file(self) -> int:
        """Units of a consume queue file."""
        return self.queue_file_size // UNIT_SIZE

    @property
    def index_file_size(self) -> int:
        """Bytes of an index file."""
        return index_layout.file_size(self.index_slots, self.index_entries)

    @property
    def keys_per_index_file(self) -> int:
        """Entry 0 is never used."""
        return self.index_entries - 1


def find_layout(
    root: Path,
    *,
    queue_file_size: int | None = None,
    index_slots: int | None = None,
    index_entries: int | None = None,
    delay_levels: tuple[int, ...] | None = None,
) -> StoreLayout:
    """What is given, else what the files under ``root`` say, else RocketMQ's defaults.

    Raises:
        BadJobOption: the files contradict what is given, or do not tell enough.
    """
    found = _size_of(root, "consumequeue/*/*/*")
    size = queue_file_size or found or DEFAULT_QUEUE_FILE_SIZE
    size -= size % UNIT_SIZE
    if size <= 0:
        raise BadJobOption(f"A consume queue file of {size} bytes holds no unit of {UNIT_SIZE} bytes.")
    if found and found != size:
        raise BadJobOption(
            f"The consume queue files in {root} have {found:,} bytes, not {size:,}.",
            remedy="Leave the size away, or name the one that the store's settings have (mappedFileSizeConsumeQueue).",
        )
    layout = StoreLayout(
        size,
        index_slots or DEFAULT_SLOTS,
        index_entries or DEFAULT_ENTRIES,
        DELAY_LEVELS_MS if delay_levels is None else delay_levels,
    )
    if layout.index_slots < 1 or layout.index_entries < 2:
        raise BadJobOption("An index file needs a slot, and room for an entry beside entry 0, which is never used.")
    index = _size_of(root, "index/*")
    if index and index != layout.index_file_size:
        raise BadJobOption(
            f"The index files in {root} have {index:,} bytes; with {layout.index_slots:,} slots and "
            f"{layout.index_entries:,} entries they would have {layout.index_file_size:,}.",
            remedy="Name both as in the store's settings: maxHashSlotNum and maxIndexNum.",
        )
    return layout


def _size_of(root: Path, pattern: str) -> int:
    """The largest of the files that ``pattern`` finds, 0 without any; only names of digits count."""
    return max((path.stat().st_size for path in root.glob(pattern) if path.name.isdigit()), default=0)
