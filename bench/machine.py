"""What the machine is, in words that say nothing of whose it is."""

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe(directory: Path) -> dict[str, str]:
    """Processor, memory, kernel, file system under `directory`, and the versions that matter."""
    return {
        "processor": f"{os.cpu_count()} x {_first('/proc/cpuinfo', 'model name') or platform.machine()}",
        "memory": f"{int((_first('/proc/meminfo', 'MemTotal') or '0 kB').split()[0]) / (1 << 20):.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "file system": _file_system(directory),
        "free disk": f"{shutil.disk_usage(directory).free / (1 << 30):.0f} GiB",
        "python": platform.python_version(),
        "grpcio": _version("grpcio"),
        "load average": " ".join(f"{value:.1f}" for value in os.getloadavg()),
    }


def _first(file: str, name: str) -> str | None:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def _file_system(directory: Path) -> str:
    """Type of the mount that holds the directory: the one with the longest matching path."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    parents = {str(directory.absolute()), *map(str, directory.absolute().parents)}
    return max(((point, kind) for point, kind in mounts if point in parents), key=lambda found: len(found[0]))[1]
