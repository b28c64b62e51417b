"""The replicator: serves the log to slaves and copies it from a master, over RocketMQ's HA protocol.

::

    __main__, settings, metrics    the service's start-up and what is told about it
    node                           the link to the store, and the side that the store's role asks for
    service, promotion, errors     tandemmq.replication.v1.Replication
    healer, healing_service, log_peer   damaged stretches of the log, fetched again from a peer
    fencing                        tells an old master that it was replaced
    store_link, log_view           what the store says, and what it is told
    channels                       how other services are called

    frames                         the HA protocol as bytes, without I/O

    master, listener               the master side: accepts slaves
    connection, sender, log_files  one slave's socket; files into it
    transfer                       what a slave is owed and what its reports mean, without I/O
    replicas, lag                  who has what, and what synchronous sends may count on, without I/O

    slave                          the slave side: follows a master until it is stopped
    slave_dial, join               the way to it
    slave_search                   where a RocketMQ master's log begins, which does not say so
    slave_connection, slave_store  from its socket into our store
    following, overlap             what is asked for, compared and acknowledged, without I/O
    staging                        the file through which the bytes pass

The service has no state of its own: it reads the store's files, and everything else it learns from the store and from
the peers.
"""
