"""A Spark standalone cluster of this machine's processes, and a Python for its workers that lacks our package."""

import os
import signal
import socket
import subprocess
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.faults.pair_process import free_port

_PATIENCE = 600.0
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_HOLDING = """
import os, sys, time

passed = 0

def hold(event, arguments):
    global passed
    if event != "os.rename" or {document!r} not in str(arguments[1]) or str(arguments[1]).endswith({free!r}):
        return
    if passed < {passes}:
        passed += 1
        return
    mark = os.path.join({place!r}, str(os.getpid()))
    try:
        open(mark, "w").close()
    except FileNotFoundError:
        return
    while os.path.exists(mark):
        time.sleep(0.01)

sys.addaudithook(hold)
"""


class Cluster:
    """Master and workers; `address` is what `--master` wants."""

    def __init__(self, place: Path, workers: int) -> None:
        self._place = place
        self._processes: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.address = f"spark://127.0.0.1:{port}"
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
        wait_until(lambda: _answers(port), "the master answers")
        for number in range(workers):
            self._start(
                *("worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g"),
                *("--webui-port", str(free_port()), "--work-dir", str(place / f"work{number}"), self.address),
            )

    def close(self) -> None:
        """Ends all of it."""
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(_PATIENCE)

    def _start(self, service: str, *arguments: str) -> None:
        import pyspark

        from tandemmq.spark.running.java import find_java

        home = Path(pyspark.__file__).parent
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"JAVA_HOME": str(find_java().home_for_spark()), "SPARK_HOME": str(home)}
        with open(self._place / f"{service}-{len(self._processes)}.log", "wb") as log:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{service}", *arguments]
            self._processes.append(
                subprocess.Popen(
                    command, env=environment, cwd=self._place, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            )


@contextmanager
def standalone_cluster(place: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster, ended at the end."""
    cluster = Cluster(place, workers)
    try:
        yield cluster
    finally:
        cluster.close()


def bare_python(place: Path) -> Path:
    """An interpreter with all packages of this one but our own."""
    venv.create(place, symlinks=True, with_pip=False)
    here = Path(sysconfig.get_paths()["purelib"])
    there = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    for package in here.iterdir():
        if "tandem" not in package.name and not (there / package.name).exists():
            (there / package.name).symlink_to(package)
    python = place / "bin" / "python"
    told = subprocess.run([python, "-c", "import tandemmq"], capture_output=True, check=False, cwd=place)
    assert told.returncode != 0, "our package is there"
    return python


class Hold:
    """Keeps tasks from being done: each waits where it would put its document in its place.

    So a test that kills or looks at something amid a job has it standing there, however fast or slow the machine is.
    """

    def __init__(self, place: Path, document: str, free: str = "nothing", passes: int = 0) -> None:
        """``document``: part of the paths of the documents that are held back.

        ``free``: the end of one that is not; ``passes``: how many others each process may put in their places before.
        """
        self._place = place / "hold"
        self._place.mkdir(parents=True)
        self._code = place / "holding"
        self._code.mkdir()
        text = _HOLDING.format(place=str(self._place), document=document, free=free, passes=passes)
        (self._code / "sitecustomize.py").write_text(text)
        self.environment = {**os.environ, "PYTHONPATH": str(self._code)}
        """Of a job whose tasks run on this machine, without a cluster."""

    def install(self, python: Path) -> None:
        """Have it in an interpreter of `bare_python`: a cluster's workers do not get the job's environment."""
        packages = Path(sysconfig.get_path("purelib", vars=dict.fromkeys(("base", "platbase"), python.parents[1])))
        (packages / "hold_tasks.py").symlink_to(self._code / "sitecustomize.py")
        (packages / "hold_tasks.pth").write_text("import hold_tasks\n")

    def held(self) -> list[int]:
        """Processes that stand there."""
        return [int(path.name) for path in self._place.iterdir()]

    def end(self) -> None:
        """All go on, and none is held any more."""
        self._place.rename(self._place.with_name("released"))


def executor_of(worker: int) -> psutil.Process:
    """The JVM of a cluster that has started a Python worker."""
    return next(parent for parent in psutil.Process(worker).parents() if _EXECUTOR in parent.cmdline())


def wait_until(condition: Callable[[], object], what: str, seconds: float = _PATIENCE) -> None:
    """Asks again and again until it is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except OSError:
        return False
    return True
