"""NodeServicer: what a process says of itself (`tandemmq.node.v1.Node`), the same in every service."""

import os
import platform
import resource
import shutil
import socket
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc

from tandemmq.common.settings.settings import Settings
from tandemmq.node.v1 import node_pb2, node_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]

_PROC = Path("/proc/self")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class NodeServicer(node_pb2_grpc.NodeServicer):
    """Answers for one service; reads /proc when it is asked."""

    def __init__(self, service: str, settings: Settings, directory: Path | None = None) -> None:
        """`service`: its name; `directory`: where its files are, None if it has none."""
        self._service = service
        self._settings = settings
        self._directory = directory
        self._version = version("tandemmq")
        self._started_ms = _started_ms()
        self.problems: Callable[[], Sequence[str]] = tuple
        """What is wrong with its surroundings, in words."""

    async def Describe(self, request: node_pb2.DescribeRequest, _context: Context) -> node_pb2.DescribeResponse:
        """See node.proto."""
        return self.describe(settings=request.settings)

    def describe(self, *, settings: bool) -> node_pb2.DescribeResponse:
        """The answer; with the settings if they are wanted."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return node_pb2.DescribeResponse(
            service=self._service,
            version=self._version,
            python_version=platform.python_version(),
            host_name=socket.gethostname(),
            pid=os.getpid(),
            started_ms=self._started_ms,
            resident_bytes=int((_PROC / "statm").read_text().split()[1]) * _PAGE,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            open_files=len(os.listdir(_PROC / "fd")),
            open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            disk=self._disk(),
            settings=_described(self._settings) if settings else (),
            ignored_settings=self._settings.ignored,
            problems=self.problems(),
        )

    def _disk(self) -> node_pb2.Disk | None:
        if self._directory is None:
            return None
        try:
            usage = shutil.disk_usage(self._directory)
        except OSError:  # not made yet
            return node_pb2.Disk(directory=str(self._directory.absolute()))
        return node_pb2.Disk(
            directory=str(self._directory.absolute()), total_bytes=usage.used + usage.free, free_bytes=usage.free
        )


def _described(settings: Settings) -> list[node_pb2.Setting]:
    return [
        node_pb2.Setting(
            name=one.name,
            value=one.value,
            default_value=one.default,
            origin=one.origin.layer,
            place=one.origin.place,
            allowed=one.allowed,
            doc=one.doc,
        )
        for one in settings.describe()
    ]


def _started_ms() -> int:
    """When this process began: proc(5), `starttime` of stat and `btime` of the kernel."""
    after_name = (_PROC / "stat").read_text().rpartition(")")[2].split()
    booted = next(
        int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime ")
    )
    return booted * 1000 + int(after_name[19]) * 1000 // _TICKS
