"""RocketMQ's own mqadmin, from the published jars of a version, as one process that runs many commands."""

import os
import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from bench.model import Unavailable
from bench.peers.rocketmq_broker import class_path

SOURCE = Path(__file__).parent / "Admin.java"
VERSIONS = ["4.9.7", "5.3.3"]
"""Of the tools; those of 5.3.2 were not published."""
PATIENCE = 180.0
_DONE = "-- done --"
_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx384m"]


class Mqadmin:
    """`mqadmin COMMAND …` of a version; skips the test where it cannot be had."""

    def __init__(self, version: str, names: str, home: Path) -> None:
        if shutil.which("javac") is None:
            pytest.skip("there is no javac: apt-get install default-jdk-headless")
        try:
            jars = class_path(version, 120.0, ("tools",))
        except Unavailable as reason:
            pytest.skip(str(reason))
        classes = home / "classes"
        classes.mkdir(parents=True)
        command = ["javac", "-nowarn", "-proc:none", "-cp", jars, "-d", str(classes), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        (home / "conf").mkdir()
        # The tools of 4.9 insist on a file for their log.
        (home / "conf" / "logback_tools.xml").write_text("<configuration><root level='OFF'/></configuration>")
        self._command = [
            "java", *_OPTIONS, f"-Duser.home={home}", f"-Drocketmq.namesrv.addr={names}",
            f"-Drocketmq.home.dir={home}", "-cp", f"{classes}{os.pathsep}{jars}", "Admin",
        ]  # fmt: skip
        self._environment = {**os.environ, "ROCKETMQ_HOME": str(home)}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def run(self, *words: str) -> str:
        """What a command prints."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join(words) + "\n")
        process.stdin.flush()
        said: list[str] = []
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        try:
            for line in process.stdout:
                if line.strip() == _DONE:
                    return "".join(said)
                said.append(line)
        finally:
            timer.cancel()
        raise AssertionError(f"mqadmin {' '.join(words)} ended, or did not end in time:\n{''.join(said)}")
