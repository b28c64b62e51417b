"""A Spark session: on this machine by default, else on the cluster that ``master`` names.

==============================  ===============================================================================
``local[*,4]``, ``local[2,4]``   threads of this machine (a task that dies is tried up to four times); the default
``local-cluster[2,1,1024]``      a cluster of processes on this machine, for tests
``spark://host:7077``            a standalone cluster
``sc://host:15002``              a Spark Connect server; no Java is needed here
==============================  ===============================================================================

Python workers must be able to import what tasks need. In local mode they run with the interpreter of this process. To
a cluster our own code is sent (shipping.py); numpy, isal and pyarrow have to be installed there, for the
interpreter that ``PYSPARK_PYTHON`` names (without it: the path of this one). All of them must see the store's files
under the same path.
"""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tandemmq.common.errors import Kind
from tandemmq.spark.errors import BadJobOption, SparkJobError
from tandemmq.spark.running.class_archive import archive_options
from tandemmq.spark.running.driver_java import java_runs, start_java
from tandemmq.spark.running.java import find_java
from tandemmq.spark.running.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*,4]"
"""All cores of this machine; a task that fails or whose worker is killed is tried again, as on a cluster."""

DEFAULT_MEMORY = "1g"
"""Of the driver's JVM. Tasks work in Python processes; of most jobs only small summaries cross the JVM."""

_LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_CONNECT = "sc://"
_CONNECT_PORT = 15002
_MASTERS = ("local", "spark://", _CONNECT, "yarn", "k8s://")
_REACH_SECONDS = 10.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class PySparkMissing(SparkJobError):
    """PySpark, or something that it needs, is not installed."""

    kind = Kind.NOT_POSSIBLE
    remedy = "install the extra `spark`: pip install 'tandemmq[spark]'"


class SessionFailed(SparkJobError):
    """Spark does not start, or its cluster does not answer."""

    kind = Kind.AWAY


def open_session(
    master: str | None = None,
    *,
    app_name: str = "tandem",
    settings: Mapping[str, str] | None = None,
    memory: str = DEFAULT_MEMORY,
    rows_cross: bool = False,
    log: Path | None = None,
) -> "SparkSession":
    """The session of this process; a new one if there is none.

    ``master``: see above; None: where `spark-submit` said, else `DEFAULT_MASTER`. ``settings``: Spark's, by name; they
    win. ``memory``: of the driver's JVM, as Spark writes it (``512m``, ``2g``). ``rows_cross``: the job moves rows
    through the JVM, as an export to Parquet does, so it is worth its while to compile its code well; else a session
    starts a second earlier. ``log``: a file for what Java and Python workers write to stdout and stderr; without it
    they are this process's own.

    Raises PySparkMissing, JavaNotFound, BadJobOption, SessionFailed.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise PySparkMissing(f"Spark's Python package cannot be imported: {error}") from error

    if master is not None and not master.startswith(_MASTERS):
        raise BadJobOption(f"{master} names no Spark cluster: use local[*], spark://HOST:PORT or sc://HOST:PORT")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = DEFAULT_MASTER
    chosen = {"spark.app.name": app_name, **session_settings(master, memory, rows_cross=rows_cross), **(settings or {})}
    try:
        if master is not None and master.startswith(_CONNECT):
            return _connect(master, chosen)
        _choose_interpreter(master)
        if not submitted and not java_runs():
            _reach(chosen["spark.master"], 7077)
            start_java(chosen, log)
        builder = SparkSession.builder
        for name, value in chosen.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    except ImportError as error:
        connect = master is not None and master.startswith(_CONNECT)
        remedy = "for Spark Connect: pip install 'pyspark[connect]'" if connect else None
        raise PySparkMissing(f"Spark cannot be used: {error}", remedy=remedy) from error
    except (PySparkException, OSError, ValueError) as error:
        raise SessionFailed(f"Spark does not start: {_told(error, log)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "py4j":
            raise
        raise SessionFailed(f"Spark does not start on {master}: {_told(error, log)}") from error
    if not _is_local(str(session.sparkContext.master)):
        ship(session)
    return session


def session_settings(master: str | None, memory: str = DEFAULT_MEMORY, *, rows_cross: bool = False) -> dict[str, str]:
    """The settings of a session on ``master``; None: of one that `spark-submit` has started. Raises JavaNotFound."""
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.execution.arrow.pyspark.enabled": "true"}
    if master is None or master.startswith(_CONNECT):
        return settings
    java = find_java()
    options = archive_options(java)
    if not rows_cross:
        options += " -XX:TieredStopAtLevel=1"
    level = "error" if _is_local(master) else "warn"  # a cluster without free cores is told in a warning only
    settings |= {
        "spark.master": master,
        "spark.driver.memory": memory,
        "spark.driver.defaultJavaOptions": f"{options} -XX:+UseSerialGC -Dtandem.spark.level={level}"
        f" -Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_local(master):
        settings["spark.sql.shuffle.partitions"] = str(max(2, os.cpu_count() or 2))
        # Both together make a task's own cost a third; each alone does little.
        settings["spark.python.daemon.module"] = "tandemmq.spark.running.worker_daemon"
        settings["spark.python.unix.domain.socket.enabled"] = "true"
    if _is_local(master) or _host_and_port(master, 0)[0] in _LOOPBACK:
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings


def _is_local(master: str) -> bool:
    """Whether tasks run as threads and children of this process's JVM."""
    return master.partition("[")[0] == "local"


def _choose_interpreter(master: str | None) -> None:
    """Workers start with the interpreter that this variable names; Spark's default is the system's python3."""
    if master is not None and _is_local(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _connect(master: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    _reach(master, _CONNECT_PORT)
    builder = SparkSession.builder.remote(master)
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    ship(session)
    return session


def _reach(master: str, usual_port: int) -> None:
    """Raises SessionFailed where nobody listens: Spark itself would try for a minute. Several masters: any will do."""
    if "://" not in master or master.startswith(("k8s", "yarn")):
        return
    reason = ""
    for one in master.partition("://")[2].split(","):
        host, port = _host_and_port(f"any://{one}", usual_port)
        try:
            socket.create_connection((host, port), timeout=_REACH_SECONDS).close()
        except OSError as error:
            reason = f"{host}:{port}: {error.strerror or error}"
        else:
            return
    raise SessionFailed(f"no Spark cluster answers at {reason}", remedy="start it, or name another with --master")


def _host_and_port(master: str, usual_port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(master)
        return parts.hostname or "", parts.port or usual_port
    except ValueError as error:
        raise SessionFailed(f"{master} is no address of a Spark cluster: {error}") from error


def _told(error: Exception, log: Path | None) -> str:
    """What an error, and the log of Java if there is one, say in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    reason = next((line for line in lines if "Exception" in line and "Py4J" not in line), lines[0] if lines else "")
    if log is None or not log.is_file():
        return reason
    written = [line for line in log.read_text(errors="replace").splitlines() if "rror" in line or "xception" in line]
    return f"{reason}; {written[0]}" if written else reason
