"""Power cuts, hundreds of times: the file system under a SYNC_FLUSH store is shut down in mid-flight and mounted again.

    python -m tests.faults.powercuts --seed 7 --lives 500          (as root)

The store lives on an ext4 of its own on a loop device. The ioctl FS_IOC_SHUTDOWN throws away whatever was not synced:
data, mapped pages, names. An acknowledgement counts if it was seen before the cut began. Some lives end by kill -9
first, so that the next one starts from pages that were never written to disk. Prints a report as JSON.
"""

import argparse
import ctypes
import fcntl
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from struct import pack

from tandemmq.store.log.marks.end_file import NAME as END
from tests.faults.lives import LIFE_SECONDS_MAX, Lives
from tests.faults.worker import Life, spawn

FS_IOC_SHUTDOWN = 0x8004587D
FREEZE, LOGFLUSH, NOLOGFLUSH = 0, 1, 2
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 0x40000
IMAGE_BYTES = 64 << 20
AUDIT_EVERY = 4
ACKS_PER_LIFE = 40
"""Messages that are to be acknowledged in a life, one with another."""
_libc = ctypes.CDLL(None, use_errno=True)


class CannotCut(Exception):
    """This machine does not let us cut the power; the text says why."""


def see_mounts_alone() -> None:
    """From here on nobody else sees what this process mounts. Raises CannotCut.

    Else a process that begins a mount namespace of its own meanwhile, as `ip netns exec` does, has a copy of the mount
    in it. To unmount ours does not end the file system then, and to mount it again finds it as it was: without power.
    """
    if _libc.unshare(_CLONE_NEWNS) or _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None):
        raise CannotCut(f"power cuts need a mount namespace: {os.strerror(ctypes.get_errno())}")


class LoopDisk:
    """A small ext4 on a loop device, in a directory of tmpfs."""

    def __init__(self, scratch: Path) -> None:
        if os.geteuid() != 0:
            raise CannotCut("power cuts need root: a file system is mounted and shut down")
        self.mount_point = scratch / "disk"
        self.mount_point.mkdir()
        image = scratch / "disk.img"
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        self._run("mkfs.ext4", "-q", "-F", "-E", options, "-m", "0", str(image))
        self.device = self._run("losetup", "--find", "--show", str(image)).strip()
        try:
            self.mount()
        except OSError as error:
            self._run("losetup", "-d", self.device)
            raise CannotCut(f"an ext4 on a loop device cannot be mounted here: {error}") from error

    @staticmethod
    def _run(*command: str) -> str:
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout
        except FileNotFoundError as error:
            raise CannotCut(f"power cuts need the command {command[0]}") from error
        except subprocess.CalledProcessError as error:
            raise CannotCut(f"{command[0]} does not work here: {error.stderr.strip()}") from error

    def mount(self) -> None:
        paths = (self.device.encode(), str(self.mount_point).encode(), b"ext4")
        if _libc.mount(*paths, 0, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def unmount(self) -> None:
        if _libc.umount2(str(self.mount_point).encode(), 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def cut(self, flag: int) -> None:
        """From here on nothing reaches the disk; with NOLOGFLUSH not even what the journal has gathered."""
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, pack("I", flag))
        finally:
            os.close(fd)

    def restore(self) -> None:
        """Power comes back: the journal is replayed. What a store noted of this boot is that of an earlier one."""
        self.unmount()
        self.mount()
        for path in self.mount_point.rglob(END):
            path.unlink()

    def remove(self) -> None:
        try:
            self.unmount()
        finally:
            self._run("losetup", "-d", self.device)


class PowerCuts(Lives):
    """Lives that end with the power."""

    audit_every = AUDIT_EVERY
    hour = 3.0

    def __init__(self, disk: LoopDisk, seed: int, scratch: Path) -> None:
        super().__init__(disk.mount_point / "store", seed, scratch)
        self.root.mkdir()
        self._disk = disk

    def one_life(self) -> None:
        draw = self.random.random
        longer = self.longer(ACKS_PER_LIFE)
        after = draw() * 0.02 if draw() < 0.2 else (0.02 + draw() * 0.16) * longer
        if draw() < 0.25:
            self.killed(self.next_life(), after)
            after = (0.01 + draw() * 0.05) * longer
        flag = self.random.choices((NOLOGFLUSH, LOGFLUSH, FREEZE), (8, 1, 1))[0]
        close_after = draw() * 0.08 * longer if draw() < 0.1 else None
        self.cut_off(self.next_life(close_after=close_after), after, flag)

    def cut_off(self, life: Life, after: float, flag: int) -> None:
        """Live, and have the power cut ``after`` seconds. What is told after the cut has begun does not count."""
        pid, pipe = spawn(life)
        for line in self.listen(pipe, after):
            self.take(line)
        self._disk.cut(flag)
        self.tally.cuts += 1
        os.kill(pid, signal.SIGKILL)
        for _ in self.listen(pipe, LIFE_SECONDS_MAX):
            pass
        self.reap(pid, pipe)
        self._disk.restore()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--lives", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--keep", type=Path, help="copy the store here when something is wrong")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    shared_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="tandem-power-", dir=shared_memory if shared_memory.is_dir() else None
    ) as scratch:
        try:
            see_mounts_alone()
            disk = LoopDisk(Path(scratch))
        except CannotCut as reason:
            json.dump({"skipped": str(reason)}, sys.stdout)
            return 0
        try:
            cuts = PowerCuts(disk, arguments.seed, Path(scratch))
            report = cuts.run(arguments.lives, cuts.one_life, arguments.minutes)
            if arguments.keep and (report["problems"] or report["broken"]):
                with suppress(shutil.Error):  # the report says what was wrong, also where the copy cannot be whole
                    shutil.copytree(cuts.root, arguments.keep)
        finally:
            disk.remove()
    json.dump(report | {"seed": arguments.seed}, sys.stdout, indent=1)
    return 1 if report["problems"] or report["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
