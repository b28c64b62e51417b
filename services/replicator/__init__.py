"""The replicator: serves the log to slaves and copies it from a master, over RocketMQ's HA protocol.

::

    __main__.py     the start-up: `python -m tandemmq.replicator`
    settings.py     its settings
    metrics.py      what it tells Prometheus
    service.py      tandemmq.replication.v1.Replication
    access.py       who may call it
    errors.py       what it answers with
    node.py         the link to the store, and the side that the store's role asks for
    store_link.py   the link to the store
    log_view.py     what is known of the store's log
    channels.py     how other services are called
    frames.py       the HA protocol as bytes, without I/O
    master/         the master side: accepts slaves, sends them the log, counts who has what
    slave/          the slave side: follows a master until it is stopped
    roles/          a slave becomes the master, and who is told
    healing/        damaged stretches of the log, fetched again from a peer; our log compared with a peer's

The service has no state of its own: it reads the store's files, and everything else it learns from the store and from
the peers.
"""
