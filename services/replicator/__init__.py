"""The replicator: serves the log to slaves and copies it from a master, over RocketMQ's HA protocol.

::

    __main__, settings, metrics    the service's start-up and what is told about it
    node                           the link to the store, and the side that the store's role asks for
    service, errors, access        tandemmq.replication.v1.Replication, and who may call it
    promotion, claim, quorum       a slave becomes the master: what is done; whether it may; how many slaves must agree
    healer, healing_service, log_peer   damaged stretches of the log, fetched again from a peer
    pair_audit                     our log compared with a peer's, by checksums
    fencing                        tells an old master that it was replaced
    signpost                       where clients find the master, for our store's refusals
    store_link, log_view           what the store says, and what it is told
    channels                       how other services are called

    frames                         the HA protocol as bytes, without I/O

    master, listener               the master side: accepts slaves
    connection, sender, log_files  one slave's socket; files into it
    transfer                       what a slave is owed and what its reports mean, without I/O
    replicas, lag                  who has what, and what synchronous sends may count on, without I/O
    roster                         whose acknowledgements count, without I/O

    slave, slave_errors            the slave side: follows a master until it is stopped; why it does not
    slave_doubts                   how long it waits for a master that it has refused
    slave_group                    what it is told of the master's other slaves
    slave_dial, join               the way to it
    slave_proof                    whether bytes that were refused are what the master has
    slave_search                   where a RocketMQ master's log begins, which does not say so
    slave_connection, slave_store  from its socket into our store
    following, overlap             what is asked for, compared and acknowledged, without I/O
    staging                        the file through which the bytes pass

The service has no state of its own: it reads the store's files, and everything else it learns from the store and from
the peers.
"""
