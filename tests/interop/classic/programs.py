"""The Java program beside this file, compiled against RocketMQ's own client of a version."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from bench.peers.rocketmq_broker import class_path
from tests.interop.rocketmq import need_rocketmq

SOURCE = Path(__file__).parent / "Client.java"
CACHE = Path.home() / ".cache" / "tandemmq" / "classic-clients"
_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m"]
_COMPILE_SECONDS = 120


@cache
def command_of(version: str, *options: str) -> list[str]:
    """What starts it; skips the test where it cannot be had."""
    need_rocketmq(version)
    if shutil.which("javac") is None:
        pytest.skip("there is no javac: apt-get install default-jdk-headless")
    jars = class_path(version)
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    classes = CACHE / f"{version}-{digest}"
    if not classes.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            command = ["javac", "-nowarn", "-encoding", "UTF-8", "-proc:none", "-cp", jars, "-d", fresh, str(SOURCE)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            shutil.copytree(fresh, classes, dirs_exist_ok=True)
    return ["java", *_OPTIONS, *options, "-cp", f"{classes}{os.pathsep}{jars}", "Client"]
