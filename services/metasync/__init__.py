"""The metadata service: topics, subscription groups, consumer offsets and delay offsets, kept equal between brokers.

One noun per file::

    __main__.py        the start-up: `python -m tandemmq.metasync`
    data_version.py    RocketMQ's DataVersion: newer, older, equal
    documents.py       the files: RocketMQ's JSON with .bak, written so that a crash leaves a whole one
    tables.py          topics and groups: what a table holds, and how it changes
    offset_tables.py   consumer offsets and delay offsets; how a slave's commits and its master's are merged
    validation.py      what clients may ask for
    keeper.py          the four tables of a node: in memory, on disk, told to who watches
    watchers.py        what each watcher has yet to hear
    translate.py       the contract's messages and the tables' entries; whole tables as pages
    standing.py        master, slave or replaced master: asked of the store
    node.py            what the node does about it
    queue_ends.py      offsets beyond the store's queues are taken back when a mastership begins
    puller.py          the slave's side: copies tables, hands over commits
    master_tables.py   what it asks a master, and how it asks another metadata service
    java_master.py     ... and a RocketMQ broker
    request_modes.py   which groups pop which topics, as the store keeps it, for the stores of slaves
    service.py         the servicer of tandemmq.metadata.v1.Metadata
    status.py          its Status
    metrics.py         what Prometheus is told
    settings.py        RocketMQ's names where RocketMQ has the setting
    channels.py        how channels to other services are made
    access.py          who may call what
    errors.py          what is refused

The tables do no I/O. docs/metadata.md says what users see of all this.
"""
