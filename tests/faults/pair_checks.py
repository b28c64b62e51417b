"""What must be true of a pair: the logs equal, the acknowledged there, queues and index the same."""

from collections.abc import Iterable
from pathlib import Path

from tandemmq.common.documents import java_json
from tests.faults.pair_load import LogFiles, Told, differs


def log_files(root: Path) -> dict[int, Path]:
    """The log's files by their first offset."""
    return {int(path.name): path for path in (root / "commitlog").iterdir() if path.name.isdigit()}


def first_difference(master: Path, slave: Path, end: int, *, begin: int = 0) -> int | None:
    """The first offset below `end` at which two logs differ, of the files that both have from `begin` on; or None."""
    ours, theirs = log_files(master), log_files(slave)
    for start in sorted(start for start in ours.keys() & theirs.keys() if begin <= start < end):
        left, right = ours[start].read_bytes(), theirs[start].read_bytes()
        assert len(left) == len(right), f"file {start}: {len(left)} and {len(right)} bytes"
        size = max(min(len(left), end - start), 0)
        if left[:size] != right[:size]:
            return start + next(at for at in range(size) if left[at] != right[at])
    return None


def assert_logs_equal(master: Path, slave: Path, end: int, *, begin: int | None = None) -> int:
    """Both logs are the same up to `end`, from the slave's first byte (or `begin`) on; gives the bytes compared."""
    ours, theirs = log_files(master), log_files(slave)
    assert theirs, "the slave has no log"
    file_size = next(iter(ours.values())).stat().st_size
    first = min(theirs) if begin is None else begin
    wanted = range(first, end, file_size)
    missing = [start for start in wanted if start not in ours or start not in theirs]
    assert not missing, f"files missing: {missing[:5]}, {len(ours)} and {len(theirs)} there, {first} to {end}"
    difference = first_difference(master, slave, end, begin=first)
    assert difference is None, f"the logs differ at {difference} (file {difference // file_size})"
    return end - first


def missing_on(root: Path, file_size: int, told: Iterable[Told], log_min: int = 0) -> list[str]:
    """What of the acknowledged messages at or after `log_min` is not in a log, read from its files."""
    files = LogFiles(root, file_size)
    try:
        wrong = (differs(one, files.record(one.physical_offset)) for one in told if one.physical_offset >= log_min)
        return [what for what in wrong if what]
    finally:
        files.close()


def queue_files(root: Path) -> dict[str, bytes]:
    """Every consume queue file that holds something, by its path."""
    found = {}
    for path in (root / "consumequeue").glob("*/*/*"):
        data = path.read_bytes() if path.name.isdigit() else b""
        if data.strip(b"\0"):
            found[str(path.relative_to(root))] = data
    return found


def index_files(root: Path) -> list[bytes]:
    """The index files, oldest first. Their names are the times at which they were made, and differ."""
    return [path.read_bytes() for path in sorted((root / "index").iterdir()) if path.name.isdigit()]


def assert_queues_equal(master: Path, slave: Path) -> int:
    """All consume queues are the same, byte for byte; gives the number of files."""
    ours, theirs = queue_files(master), queue_files(slave)
    assert ours.keys() == theirs.keys(), sorted(ours.keys() ^ theirs.keys())[:10]
    different = [name for name, data in ours.items() if theirs[name] != data]
    assert not different, different[:10]
    return len(ours)


def topics_of(root: Path) -> dict[str, object]:
    """The topic table, as metasync wrote it."""
    table = java_json.loads((root / "config" / "topics.json").read_bytes())["topicConfigTable"]
    assert isinstance(table, dict)
    return table


def same_topics(master: Path, slave: Path) -> bool:
    """Whether the slave's metasync has brought it the topics; at first it has no table at all."""
    try:
        return topics_of(master) == topics_of(slave)
    except FileNotFoundError:
        return False


def leftovers(root: Path) -> list[str]:
    """Files that only a running node has."""
    return [path.name for path in root.iterdir() if path.name.startswith("tandem.staging")]


def assert_index_equal(master: Path, slave: Path) -> int:
    """The index files are the same, byte for byte; gives their number."""
    ours, theirs = index_files(master), index_files(slave)
    assert len(ours) == len(theirs)
    different = [number for number, data in enumerate(ours) if theirs[number] != data]
    assert not different, f"index files {different[:10]} of {len(ours)} differ"
    return len(ours)
