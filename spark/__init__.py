"""A commit log for Spark: read as a table, its consume queues and index rebuilt, audited and exported.

    data_source.py    `spark.read.format("commitlog")`
    streaming.py      `spark.readStream.format("commitlog")`
    rebuild.py        the rebuild, as a script for spark-submit
    export.py         to Parquet
    direct_export.py  the same without Spark
    session.py        a Spark session on this machine or a cluster
    errors.py         what can go wrong

What they are made of, in rooms; each maps its own modules::

    source/           the data source: columns, options, conditions, batches
    streams/          following a log that grows
    rebuilding/       consume queues and index from the commit log
    auditing/         consume queues and index compared with it
    reading/          what all of them read a log with
    running/          tasks, on Spark or without it

The bytes themselves are the business of `tandemmq.store.format`.

Scripts habitually call their session ``spark``, so nothing is imported here: import names out of the modules, as in
``from tandemmq.spark.data_source import CommitLogDataSource``.
"""
