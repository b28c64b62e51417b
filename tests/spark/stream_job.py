"""A streaming job as a program of its own, to be killed: ``stream_job.py PLACE name=value …``.

It writes the bodies of a log's messages into Parquet below PLACE, for ever.
"""

import sys
from pathlib import Path

from tandemmq.spark.data_source import CommitLogDataSource
from tandemmq.spark.session import open_session


def main() -> None:
    place, *options = sys.argv[1:]
    session = open_session("local[2,4]", settings={"spark.local.dir": str(Path(place) / "local")})
    session.dataSource.register(CommitLogDataSource)
    reading = session.readStream.format("commitlog").option("columns", "body")
    for option in options:
        name, _, value = option.partition("=")
        reading = reading.option(name, value)
    writing = reading.load().writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint")
    writing.start(f"{place}/out").awaitTermination()


if __name__ == "__main__":
    main()
