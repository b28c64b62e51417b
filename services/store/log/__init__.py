"""Files on disk: the commit log and everything derived from it. No gRPC, no protocol.

One noun per file. The whole, and what it is made of::

    message_store.py       a directory, opened, recovered, written, read and closed: begin here
    parts.py               what recovery, rebuilds and background work share
    config.py              the settings of this layer
    errors.py              its errors
    observer.py            what it tells of itself, for metrics
    event.py               something that happens, and who wants to hear of it

The commit log::

    commit_log.py          appending
    mapped_file_queue.py   its files, in order
    mapped_file.py         one of them
    flush.py               group commit
    retention.py           old files go
    tail.py                what lies behind the last good record is kept, then zeroed
    scan.py                reading from one offset to another, across files, blanks and damage
    examining.py           looking at a stretch again, with checksums
    walkers.py             which walker reads: the compiled one, or the one in Python

What is derived from it::

    dispatch.py            gives each record to all that is derived
    derived.py             what such a thing is; the units of the queues
    consume_queue_store.py all consume queues
    consume_queue.py       one of them
    queue_offsets.py       the next number of each queue
    bulk.py                many messages of a queue at once
    time_search.py         a queue offset by time
    index.py               the hash index
    index_file.py          one of its files

Starting, and being put right::

    recovery.py            the end of the log, and derived files that agree with it
    queue_recovery.py      ... of the consume queues
    index_recovery.py      ... of the index
    missing_files.py       log files that should be there
    accepted_loss.py       going on without them
    damage.py              damaged stretches of the log: what is known of them
    file_problems.py       files beside the log that a start cannot use
    restoring.py           rebuilds in the background
    rebuild.py             queues and index from the log
    queue_repairs.py       units that do not fit the log
    queue_stretch.py       ... a stretch of them
    index_repairs.py       an index that does not fit the log
    index_comparison.py    ... compared with it
    scrub.py               reading everything before anybody asks
    healing.py             damaged stretches from a peer's bytes
    adoption.py            rebuilt files of others are taken over
    staged_files.py        ... from their staging directory

Our own files::

    checkpointer.py        makes derived files durable, and writes down how far
    checkpoint_file.py     `checkpoint`
    manifest.py            `tandem.manifest`
    abort_file.py          `abort`
    lock.py                `lock`
    running_flags.py       why nothing may be written

Master and slave::

    mastership.py          `tandem.epoch`: whose log it is, since when
    replica_group.py       `tandem.group`: the master and the other slaves
    replica.py             a slave's bytes, and changing the role
    replica_check.py       whole records that are right, and others
    replica_mark.py        `tandem.replica`: where a slave writes
    confirmed.py           what replicas have, and consumers may see

The edges::

    disk.py                every side effect on files
    clock.py               the time of day
    threads.py             work in a thread, to its end
    slices.py              long work on the loop, in slices
    file_cache.py          open descriptors
    read_only.py           a disk for those who only look
    inspect.py             looking at a directory without opening it
"""
