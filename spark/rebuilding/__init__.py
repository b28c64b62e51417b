"""The rebuild: consume queues and index of a store from its commit log.

index_builder.py      building one index file from spilled keys
keys_spill.py         index keys on their way from the scan of the log to the index files
publishing.py         putting rebuilt files in the place of a store's own, while no broker runs on the directory
queue_writer.py       writing consume queue units where they belong, from many tasks at once
rebuild_job.py        the rebuild, phase by phase
rebuild_metrics.py    numbers of a rebuild for Prometheus, served while it runs
rebuild_plan.py       the plan of a rebuild
rebuild_source.py     which log a rebuild reads, and how far
rebuild_tasks.py      the tasks of a rebuild
staging.py            the directory that a rebuild works in, beside the store's own
stitching.py          what the ranges of a log have found, put together
"""
