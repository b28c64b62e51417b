"""The contracts between the services of a node: for the replicator, Spark and the audits.

One noun per file::

    replica_log_servicer.py   the replicator's link, and its role
    replica_link.py           progress both ways
    staging.py                a master's bytes, out of the staging file
    log_repair_servicer.py    damage, and bytes that mend it
    derived_files_servicer.py queues and index that were built elsewhere
"""
