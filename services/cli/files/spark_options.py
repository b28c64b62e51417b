"""Options of the commands that run on Spark, and the session that they ask for."""

import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tandemmq.spark.running.runner import Runner

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        envvar="TANDEM_SPARK_MASTER",
        metavar="URL",
        help="Where Spark runs: local[N] (N cores of this machine; * for all), spark://HOST:PORT (a standalone "
        "cluster), sc://HOST:PORT (Spark Connect), processes[N]: without Spark and Java. Without it: all cores of this "
        "machine.",
    ),
]

SparkConf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark, by its name. Repeatable."),
]

Memory = Annotated[
    str, typer.Option("--driver-memory", metavar="SIZE", help="Memory of the driver's Java, as 512m or 2g.")
]

Running = Annotated[
    str | None,
    typer.Option("--running", metavar="HOST:PORT", help="The store runs on this directory, and answers here."),
]

Partitions = Annotated[
    int | None, typer.Option("--partitions", metavar="N", help="Cut the log into about N tasks.", min=1)
]

RangeSize = Annotated[int, typer.Option("--range-size", metavar="BYTES", help="Bytes of log a task.", min=1 << 16)]

DEFAULT_RANGE_SIZE = 128 << 20
DEFAULT_MEMORY = "1g"

PROCESSES = re.compile(r"processes(?:\[(\d+|\*)\])?")
"""What --master says where Spark is not wanted."""

_GREETING = "Using incubator modules"


@contextmanager
def spark_session(
    output: Output,
    app_name: str,
    master: str | None,
    conf: list[str] | None,
    memory: str = DEFAULT_MEMORY,
    *,
    rows_cross: bool = False,
) -> "Iterator[SparkSession]":
    """A session for a command, stopped at the end.

    What Java and the workers write goes to a file, which is kept, and named, if the command fails. ``rows_cross``: see
    `open_session`, which also says what is raised.
    """
    settings = _split(conf)
    from tandemmq.spark.session import open_session

    descriptor, name = tempfile.mkstemp(prefix="tandem-spark-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    handler = logging.FileHandler(log)  # of Python's side of Spark: it tells every lost connection with a traceback
    logging.getLogger().addHandler(handler)
    try:
        session = open_session(
            master, app_name=app_name, settings=settings, memory=memory, rows_cross=rows_cross, log=log
        )
        try:
            yield session
        finally:
            with suppress(Exception):  # a Java that has died cannot be stopped; what happened is told already
                session.stop()
    except KeyboardInterrupt:
        log.unlink()
        raise
    except BaseException:
        if _says_something(log):
            output.remark(f"What Spark has written is in {log}.")
        else:
            log.unlink()
        raise
    else:
        log.unlink()
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


@contextmanager
def job_runner(
    output: Output, app_name: str, master: str | None, conf: list[str] | None, memory: str = DEFAULT_MEMORY
) -> "Iterator[Runner]":
    """What runs the tasks of a job whose data does not cross Spark.

    Processes where `--master` says so, or where it says nothing and PySpark is not installed; else a session.

    Raises BadParameter for a number that is none; else see `spark_session`.
    """
    from tandemmq.spark.running.runner import PoolRunner, SparkRunner

    if master is None and find_spec("pyspark") is None:
        output.remark("PySpark is not installed: the cores of this machine do it without, as --master processes says.")
        master = "processes"
    if master is not None and (told := PROCESSES.fullmatch(master)):
        number = told[1]
        if number == "0":
            raise typer.BadParameter("processes[0] would do nothing", param_hint="--master")
        with PoolRunner(int(number) if number and number != "*" else None) as pool:
            yield pool
        return
    with spark_session(output, app_name, master, conf, memory) as session:
        yield SparkRunner(session)


def _says_something(log: Path) -> bool:
    """Whether there is more in it than Java's greeting."""
    return any(line.strip() and _GREETING not in line for line in log.read_text(errors="replace").splitlines())


def _split(conf: list[str] | None) -> dict[str, str]:
    """`NAME=VALUE` options as a dictionary. Raises BadParameter."""
    settings = {}
    for text in conf or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--conf")
        settings[name.strip()] = value.strip()
    return settings
