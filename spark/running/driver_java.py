"""The driver's Java: started, with its output where it belongs, and ended, by means of PySpark's that are not public.

PySpark starts Java when a session opens, but lets nobody say where its output goes. So it is started before, by the
same functions. They are checked first: a PySpark that has changed them is refused.
"""

import inspect
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tandemmq.common.errors import Kind
from tandemmq.spark.errors import SparkJobError
from tandemmq.spark.running.java import find_java


class UnknownPySpark(SparkJobError):
    """This version of PySpark starts Java in a way that we do not know."""

    kind = Kind.NOT_POSSIBLE
    remedy = "install a PySpark that TandemMQ was tested with (constraints.txt), or use a cluster by Spark Connect"


def java_runs() -> bool:
    """Whether this process has the driver's Java. Raises UnknownPySpark, ImportError."""
    return _context()._gateway is not None


def start_java(settings: Mapping[str, str], log: Path | None) -> None:
    """Start the driver's Java with Spark's settings; ``log``: a file for its output.

    Raises UnknownPySpark, JavaNotFound.
    """
    from pyspark import SparkConf

    context, launch = _context(), _launcher()
    os.environ["JAVA_HOME"] = str(find_java().home_for_spark())
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with _uninterrupted(), _plainly_started(), nullcontext() if log is None else log.open("ab") as file:
        gateway = launch(conf, popen_kwargs={"stdout": file, "stderr": file})
        context._ensure_initialized(gateway=gateway, conf=conf)


def end_java() -> None:
    """Let the driver's Java end, which it does with its standard input, and wait. Raises UnknownPySpark."""
    process = getattr(_context()._gateway, "proc", None)
    if process is None:
        raise _unknown("no process in SparkContext._gateway")
    process.stdin.close()
    process.wait()


def _context() -> Any:
    from pyspark import SparkContext

    if not hasattr(SparkContext, "_gateway"):
        raise _unknown("no SparkContext._gateway")
    if not _takes(getattr(SparkContext, "_ensure_initialized", None), "gateway", "conf"):
        raise _unknown("no SparkContext._ensure_initialized(gateway, conf)")
    return SparkContext


def _launcher() -> Any:
    from pyspark import java_gateway

    launch = getattr(java_gateway, "launch_gateway", None)
    if not _takes(launch, "conf", "popen_kwargs"):
        raise _unknown("no pyspark.java_gateway.launch_gateway(conf, popen_kwargs)")
    if getattr(java_gateway, "Popen", None) is not subprocess.Popen:
        raise _unknown("no pyspark.java_gateway.Popen that is subprocess.Popen")
    return launch


def _takes(function: Any, *names: str) -> bool:
    return callable(function) and set(names) <= inspect.signature(function).parameters.keys()


def _unknown(lacks: str) -> UnknownPySpark:
    import pyspark

    return UnknownPySpark(f"PySpark {pyspark.__version__} is not one that TandemMQ knows: it has {lacks}")


@contextmanager
def _plainly_started() -> Iterator[None]:
    """PySpark's Popen without its `preexec_fn`.

    That one keeps Ctrl-C from Java, which a process group of its own does too. But with it, what libraries have for
    forks runs in the new process, and grpcio's part can abort there (see common/processes/child_process.py).
    """
    from pyspark import java_gateway

    def popen(command: list[str], *, preexec_fn: object, **settings: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, process_group=0, **settings)

    with patch.object(java_gateway, "Popen", popen):
        yield


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C takes effect at the end: PySpark would forget the Java that it is starting, which would run for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
