"""Files on disk: the commit log and everything derived from it. No gRPC, no protocol.

    message_store.py    a directory, opened, recovered, written, read and closed: begin here
    parts.py            what recovery, rebuilds and background work share
    dispatch.py         gives each record to all that is derived
    derived.py          what such a thing is; the units of the queues
    inspect.py          looking at a directory without opening it
    config.py           the settings of this layer
    errors.py           its errors
    observer.py         what it tells of itself, for metrics
    event.py            something that happens, and who wants to hear of it

Its rooms; each maps its own modules::

    segments/           the commit log: its files, appending, flushing, reading, retention
    queues/             the consume queues
    reading/            reading records
    index/              the hash index
    recovery/           starting, and being put right while it runs
    adoption/           consume queues and index that others have rebuilt are taken over
    marks/              small files beside the log: how far derived files are durable, who holds the directory
    replica/            master and slave, as far as files know of it
    compiled/           appending, for plain records: the compiled twin of segments/commit_log.py
    edges/              where this layer touches the machine: disk, time, threads, descriptors
"""
