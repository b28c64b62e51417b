"""A real RocketMQ broker on a store directory, with the file sizes of `ours.SIZES`."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from bench.model import Unavailable
from bench.peers.rocketmq_broker import broker, class_path
from bench.process import ServerProcess
from tests.faults.pair_process import free_broker_port
from tests.interop.ours import CONFIG
from tests.interop.remoting import Remoting

VERSIONS = ["4.9.7", "5.3.2"]
"""One of each line, as published."""

ALONE = pytest.mark.rocketmq
"""One broker of each line at a time, or the machine's memory is full of Java; and the jars are fetched once."""

_RESOLVE_SECONDS = 120.0
"""For all versions together, where the jars are not here yet."""

_START_SECONDS = 240.0
# A short life: the first compiler only, one collector thread, little memory.
_JVM = ["-Xms256m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
# On a disk that others have filled to 85 % it deletes files of any age, and from 90 % on it refuses messages.
_JVM += [f"-Drocketmq.broker.diskSpace{what}Ratio=0.99" for what in ("CleanForcibly", "WarningLevel")]


_deadline: list[float] = []


def need_rocketmq(version: str) -> None:
    """Skips the test where the broker cannot be had, with the reason."""
    reason = _why_not(version)
    if reason:
        pytest.skip(reason)


@cache
def _why_not(version: str) -> str:
    if shutil.which("java") is None:
        return "RocketMQ needs Java: apt-get install openjdk-17-jre-headless"
    _deadline.append(time.monotonic() + _RESOLVE_SECONDS)
    try:
        class_path(version, max(_deadline[0] - time.monotonic(), 5.0))
    except Unavailable as reason:
        return str(reason)
    return ""


class RocketMQ:
    """A broker of one version on the store directory `root`, with `settings` of its own."""

    def __init__(self, version: str, root: Path, **settings: object) -> None:
        self.root = root
        self.home = root.with_name(f"{root.name}-rocketmq")
        self.server: ServerProcess = broker(
            "interop",
            version,
            self.home,
            {
                "brokerClusterName": "interop",
                "storePathRootDir": root,
                "storePathCommitLog": root / "commitlog",
                "mappedFileSizeCommitLog": CONFIG["mapped_file_size_commit_log"],
                "mappedFileSizeConsumeQueue": CONFIG["mapped_file_size_consume_queue"],
                "maxHashSlotNum": CONFIG["max_hash_slot_num"],
                "maxIndexNum": CONFIG["max_index_num"],
                "maxMessageSize": CONFIG["max_message_size"],
                "fileReservedTime": 100_000,
                "diskMaxUsedSpaceRatio": 99,
                "waitTimeMillsInSendQueue": 60_000,  # after 200 ms it refuses a message, on a machine that is busy
                "waitTimeMillsInPullQueue": 60_000,
                "osPageCacheBusyTimeOutMills": 60_000,
                "reviveQueueNum": 1,  # of RocketMQ 5's pop consumers, which are not used; each takes a second to stop
                **settings,
            },
            _JVM,
            free_broker_port(),
        )

    def start(self) -> None:
        """Starts and waits until it listens. Raises Unavailable, with its last words, when it does not."""
        self.server.start(_START_SECONDS)

    def connect(self) -> Remoting:
        """A connection."""
        return Remoting(self.server.port)

    def stop(self) -> None:
        """Ends it cleanly."""
        self.server.stop()
        assert not (self.root / "abort").exists(), f"the broker did not end cleanly:\n{self.log()[-3000:]}"

    def kill(self) -> None:
        """Ends it with SIGKILL."""
        self.server.kill()
        self._remove_empty_files()

    def _remove_empty_files(self) -> None:
        """What an operator of RocketMQ 4.9 does after a kill; 5.x does it itself.

        A kill between a file's creation and its extension leaves it empty. 4.9 then ends at once with 253 and
        "length not matched message store config value, please check it manually".
        """
        for room in ("commitlog", "consumequeue"):
            for path in (self.root / room).rglob("*"):
                if path.is_file() and path.stat().st_size == 0:
                    path.unlink()

    def log(self) -> str:
        """What it has logged."""
        files = [path for path in self.home.rglob("*.log") if path.is_file()]
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')}" for path in sorted(files))

    @contextmanager
    def serving(self) -> Iterator[Remoting]:
        """Runs it for a while, and ends it cleanly."""
        self.start()
        try:
            with self.connect() as remoting:
                yield remoting
            self.stop()
        finally:
            self.kill()
