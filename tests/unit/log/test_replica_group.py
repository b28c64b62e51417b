"""The file tandem.group: what a node knows of its master, or an error that says so; never something else."""

from pathlib import Path

import pytest

from tandemmq.common.documents.sealed import seal
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import UnusableDirectory
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.replica.replica_group import NAME, GroupFile, GroupMember, ReplicaGroup
from tests.unit.log.replica_kit import config

GROUP = ReplicaGroup(
    epoch=2, generation=3, needed=1, needed_before=1, known_end=4_711,
    members=(GroupMember("1", "90ab", "10.0.0.7:8084"), GroupMember("2", "", "10.0.0.8:8084", joining=True)),
)  # fmt: skip
DOCUMENT = {
    "version": 1, "epoch": 2, "generation": 3, "needed": 1, "needed_before": 1, "known_end": 0, "members": [],
    "master": ["", ""],
}  # fmt: skip


def written(root: Path) -> GroupFile:
    file = GroupFile(root, LocalDisk())
    file.remember(GROUP)
    file.follow("10.0.0.5:10912", "10.0.0.5:8084")
    return file


def test_it_outlives_a_restart(tmp_path: Path) -> None:
    before, again = written(tmp_path), GroupFile(tmp_path, LocalDisk())
    assert (again.group, again.master) == (before.group, before.master)
    assert again.group == GROUP


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    file = GroupFile(tmp_path, LocalDisk())
    assert (file.group, file.master) == (ReplicaGroup(), ("", ""))


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / NAME
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(UnusableDirectory, match=NAME):
            GroupFile(tmp_path, LocalDisk())


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"epoch": -1}, {"known_end": True}, {"needed": "1"}, {"members": [["1", "", "a:1", 0]]},
        {"members": [["1"]]}, {"master": [""]}, {"master": [1, ""]}, {"master": None},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / NAME).write_bytes(seal(DOCUMENT | change))
    with pytest.raises(UnusableDirectory, match=NAME):
        GroupFile(tmp_path, LocalDisk())


def test_a_store_with_such_a_file_does_not_start(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"{}")
    with pytest.raises(UnusableDirectory, match=NAME):
        MessageStore.open(config(tmp_path, "SLAVE"))
    assert {path.name for path in tmp_path.iterdir()} <= {NAME, "lock"}
