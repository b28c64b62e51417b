"""The contracts between the services of a node: for the replicator, gateways, Spark and the audits.

One noun per file::

    replica_log_servicer.py   the replicator's link, and its role
    replica_link.py           progress both ways
    staging.py                a master's bytes, out of the staging file
    log_repair_servicer.py    damage, and bytes that mend it
    broker_servicer.py        gateways
    gateway_link.py           ... one of them: its questions, and the answers
    gateway_sends.py          ... its plain messages
    compiled/                 ... the same, compiled: bytes of messages, bytes of their answers
    gateway_receives.py       ... its receives that are answered at once
    gateway_acknowledgements.py  ... its acknowledgements, those of a turn together
    gateway_answers.py        ... the broker's words as the link's
    gateway_members.py        ... its clients, leased
    gateway_entries.py        ... the topics and groups that it has found
    gateway_credit.py         ... what it has memory for
    derived_files_servicer.py queues and index that were built elsewhere
"""
