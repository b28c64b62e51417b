"""Spark's Java classes, prepared for a quick start: 3.6 s instead of 7.6 s for a session, a task and a query.

Half of the time in which a session opens, Java reads and checks some 20 thousand classes out of 300 jar files. It can
keep them as it has them in memory, in an archive (class data sharing), and map that instead. The archive is some
150 MB; it is made once for a Java and a PySpark, by ``python -m tandemmq.spark.running.class_archive``, and lies in
the user's cache. Java checks that it fits, and does without it if not.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tandemmq.spark.errors import SparkJobError
from tandemmq.spark.running.java import Java, find_java
from tandemmq.spark.running.user_cache import cache_directory

_SILENT = "-Xlog:disable -Xlog:all=error:stderr"
"""Java's own remarks would go to stdout, where results belong."""

_PATIENCE = 300
"""Seconds for a run that takes some 25."""


def archive_path(java: Java) -> Path:
    """Where the archive for this Java and the installed PySpark is, or would be."""
    import pyspark

    try:
        release = (java.home / "release").read_text(errors="replace")
    except OSError:
        release = str(java.version)
    return cache_directory(f"{pyspark.__version__} {pyspark.__file__} {java.home} {release}") / "spark-classes.jsa"


def archive_options(java: Java) -> str:
    """Arguments of Java that use the archive if there is one."""
    path = archive_path(java)
    if not path.is_file() or " " in str(path):  # Spark splits its options at spaces
        return _SILENT
    return f"{_SILENT} -XX:SharedArchiveFile={path}"


def make_archive(java: Java) -> Path:
    """Make the archive, by using what our jobs use, in a process of its own. Raises SparkJobError."""
    path = archive_path(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        fresh = Path(scratch) / path.name
        ended = subprocess.run(
            [sys.executable, "-m", __name__ if __name__ != "__main__" else _NAME, "--train", scratch, str(fresh)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PATIENCE,
            check=False,
        )
        if ended.returncode != 0 or not fresh.is_file():
            told = ended.stderr.decode(errors="replace").strip().splitlines()
            raise SparkJobError(f"no archive of Spark's classes was made: {told[-1] if told else ended.returncode}")
        os.replace(fresh, path)
    return path


_NAME = "tandemmq.spark.running.class_archive"


def _train(scratch: str, archive: str) -> None:
    """Run a bit of everything, then let Java write what classes it has."""
    from pyspark.sql import functions

    from tandemmq.spark.running.driver_java import end_java
    from tandemmq.spark.session import open_session

    settings = {
        "spark.driver.defaultJavaOptions": f"{_SILENT} -XX:+UseSerialGC -XX:ArchiveClassesAtExit={archive}",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
    }
    session = open_session("local[2]", app_name="class archive", settings=settings)
    context = session.sparkContext
    context.parallelize(range(4), 2).map(str).collect()
    rows = session.createDataFrame(
        [(1, "a", ["x"], {"k": "v"}, bytearray(b"b"))],
        "n long, t string, k array<string>,p map<string,string>, b binary",
    )
    grouped = rows.where("t = 'a'").groupBy("t").agg(functions.sum("n").alias("total"), functions.count("*"))
    grouped.orderBy(functions.desc("total")).limit(3).collect()
    rows.join(grouped, "t", "left").select("n", "total").collect()
    rows.withColumn("day", functions.lit("2026-01-01")).write.partitionBy("t", "day").parquet(f"{scratch}/table")
    session.read.parquet(f"{scratch}/table").count()
    session.stop()
    end_java()  # that is when it writes


def main() -> int:
    """Make the archive; says nothing where there is no Spark or no Java. Gives the exit status."""
    if sys.argv[1:2] == ["--train"]:
        _train(*sys.argv[2:4])
        return 0
    try:
        path = make_archive(find_java())
    except (SparkJobError, ImportError) as error:
        sys.stderr.write(f"Spark starts without prepared classes: {error}\n")
        return 0
    sys.stdout.write(f"{path}: {path.stat().st_size >> 20} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
