"""A commit log for Spark: read as a table, its consume queues and index rebuilt, audited and exported.

    data_source.py    `spark.read.format("commitlog")`: schema.py, source_options.py, source_filters.py,
                      record_batches.py
    streaming.py      `spark.readStream.format("commitlog")`
    rebuild_job.py    the rebuild, phase by phase; rebuild.py is its script for spark-submit
    audit_job.py      the audit
    export.py         to Parquet
    session.py        a Spark session on this machine or a cluster; java.py, shipping.py, runner.py

What all of them read a log with: log_files.py (which files there are), ranges.py (pieces for tasks), walking.py (the
records of a piece, and where it is damaged). The bytes themselves are the business of `tandemmq.store.format`.

Scripts habitually call their session ``spark``, so nothing is imported here: import names out of the modules, as in
``from tandemmq.spark.data_source import CommitLogDataSource``.
"""
