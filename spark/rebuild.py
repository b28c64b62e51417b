"""The rebuild as a script: ``spark-submit spark/rebuild.py STORE [options]``; `tandem data rebuild` is the same, nicer.

The session is the one that spark-submit describes (``--master``, ``--conf``), the arguments those of the command.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from tandemmq.common.errors import TandemError
from tandemmq.spark.rebuilding.rebuild_job import RebuildReport, RebuildRequest, rebuild
from tandemmq.spark.running.runner import SparkRunner
from tandemmq.spark.session import open_session


def arguments(line: list[str]) -> argparse.Namespace:
    """What the command line says; an error of it ends the process with status 2."""
    parser = argparse.ArgumentParser(prog="rebuild.py", description="Rebuild consume queues and index of a store.")
    parser.add_argument("store", type=Path, help="storePathRootDir, or the directory above a copied commitlog folder")
    parser.add_argument("--topics", default="", help="whose consume queues, by commas; all without it")
    parser.add_argument("--no-queues", action="store_true", help="the index only")
    parser.add_argument("--no-index", action="store_true", help="the consume queues only")
    parser.add_argument("--partitions", type=int, help="number of ranges, instead of their size")
    parser.add_argument("--range-size", type=int, default=128, help="MiB of log in a range")
    parser.add_argument("--staging", type=Path, help="where to work; STORE/tandem.rebuild without it")
    parser.add_argument("--no-publish", action="store_true", help="leave the result there")
    parser.add_argument("--running", metavar="HOST:PORT", help="client address of the store, if it runs")
    parser.add_argument("--internal", metavar="HOST:PORT", help="its node-internal address; port 9081 without it")
    parser.add_argument("--queue-file-size", type=int, help="mappedFileSizeConsumeQueue")
    parser.add_argument("--index-slots", type=int, help="maxHashSlotNum")
    parser.add_argument("--index-entries", type=int, help="maxIndexNum")
    return parser.parse_args(line)


def main(line: list[str]) -> int:
    """Rebuild; the report goes to standard output as JSON. Gives the exit status."""
    told = arguments(line)
    request = RebuildRequest(
        root=told.store,
        topics=tuple(topic for topic in told.topics.split(",") if topic),
        queues=not told.no_queues,
        index=not told.no_index,
        range_size=told.range_size << 20,
        partitions=told.partitions,
        staging=told.staging,
        running=told.running,
        internal=told.internal,
        consume_queue_file_size=told.queue_file_size,
        index_slots=told.index_slots,
        index_entries=told.index_entries,
        publish=not told.no_publish,
    )
    try:
        session = open_session(app_name="tandem data rebuild")
        try:
            report = rebuild(request, SparkRunner(session))
        finally:
            session.stop()
    except (TandemError, OSError) as error:
        sys.stderr.write(f"{error.explain() if isinstance(error, TandemError) else error}\n")
        return 1
    sys.stdout.write(json.dumps(as_json(report)) + "\n")
    return 0


def as_json(report: RebuildReport) -> dict[str, object]:
    """The report as a document."""
    document = dataclasses.asdict(report)
    document["staging"] = None if report.staging is None else str(report.staging)
    return document


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
