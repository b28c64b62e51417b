"""Frames into a socket that takes little at a time: what was planned, byte by byte; files that are not as promised."""

import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.replicator.frames import encode_header
from tandemmq.replicator.master.log_files import OpenLogFiles, Unreadable
from tandemmq.replicator.master.sender import PlainSender
from tandemmq.replicator.master.transfer import Frame

FILE_SIZE = 256 << 10


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    data = random.Random(1).randbytes(4 * FILE_SIZE)
    (tmp_path / "commitlog").mkdir()
    for at in range(0, len(data), FILE_SIZE):
        (tmp_path / "commitlog" / f"{at:020d}").write_bytes(data[at : at + FILE_SIZE])
    return data


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_608)
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("seed", range(6))
def test_what_comes_out_is_what_was_planned(
    tmp_path: Path, log: bytes, ends: tuple[socket.socket, socket.socket], seed: int
) -> None:
    chance, files = random.Random(seed), OpenLogFiles(tmp_path)
    sender, expected, found = PlainSender(ends[0]), b"", b""
    for _ in range(30):
        offset = chance.randrange(len(log))
        room = FILE_SIZE - offset % FILE_SIZE
        size = min(chance.choice((0, 1, 300, 16_384, 16_385, 100_000)), room)
        sender.add(Frame(offset, size), files.at(offset, FILE_SIZE) if size else None)
        expected += encode_header(offset, size) + log[offset : offset + size]
    while len(found) < len(expected):
        done = sender.push()
        assert done == (not sender.pending)
        try:
            found += ends[1].recv(chance.choice((1, 5, 11, 12, 13, 1_000, 50_000)))
        except BlockingIOError:
            assert not done
    assert found == expected
    assert sender.written == len(expected)
    assert sender.push()


def test_a_file_that_is_shorter_than_the_store_said(
    tmp_path: Path, log: bytes, ends: tuple[socket.socket, socket.socket]
) -> None:
    os.truncate(tmp_path / "commitlog" / f"{0:020d}", 1_000)
    for size in (2_000, 20_000):
        sender = PlainSender(ends[0])
        sender.add(Frame(0, size), OpenLogFiles(tmp_path).at(0, FILE_SIZE))
        with pytest.raises(Unreadable, match="ends at byte 1000"):
            push_all(sender, ends[1])


def push_all(sender: PlainSender, theirs: socket.socket) -> None:
    while not sender.push():
        theirs.recv(1 << 20)


def test_files_are_found_by_offset_and_let_go(tmp_path: Path, log: bytes) -> None:
    files = OpenLogFiles(tmp_path)
    assert files.at(FILE_SIZE, FILE_SIZE).base == FILE_SIZE
    assert files.at(FILE_SIZE - 1, FILE_SIZE).base == 0
    held = files.at(5, FILE_SIZE)
    assert held is files.at(6, FILE_SIZE)
    assert len(files) == 2
    files.forget_below(FILE_SIZE)
    assert len(files) == 1
    held.path.unlink()
    assert held.read(5, 10) == log[5:15]
    with pytest.raises(Unreadable, match="No such file"):
        files.at(0, FILE_SIZE)
    with pytest.raises(Unreadable, match="storePathRootDir"):
        _explained(tmp_path / "nowhere")


def _explained(directory: Path) -> None:
    try:
        OpenLogFiles(directory).at(0, FILE_SIZE)
    except Unreadable as error:
        raise Unreadable(error.explain()) from error


def test_descriptors_are_closed_when_nobody_holds_them(tmp_path: Path, log: bytes) -> None:
    def opened() -> int:
        """Of these files alone: others of this process come and go with what earlier tests have left."""
        return sum(_target(fd).is_relative_to(tmp_path) for fd in Path("/proc/self/fd").iterdir())

    files = OpenLogFiles(tmp_path)
    for at in range(0, len(log), FILE_SIZE):
        assert files.at(at, FILE_SIZE).resident(at, FILE_SIZE)
    assert opened() == 4
    files.forget_all()
    assert opened() == 0


def _target(fd: Path) -> Path:
    try:
        return fd.readlink()
    except FileNotFoundError:  # it was that of the directory's listing
        return Path()


def test_reads_across_nothing_but_what_is_asked(tmp_path: Path, log: bytes) -> None:
    file = OpenLogFiles(tmp_path).at(2 * FILE_SIZE, FILE_SIZE)
    assert file.read(2 * FILE_SIZE + 7, 100) == log[2 * FILE_SIZE + 7 : 2 * FILE_SIZE + 107]
    with pytest.raises(Unreadable, match="ends at byte"):
        file.read(3 * FILE_SIZE - 1, 2)
