"""What the store's operations mean, between the files (`log/`) and the network (`fronts/`).

One noun per file::

    broker.py          the broker port: all of it as calls, for every protocol
    errors.py          refusals, each of a kind

    rules.py           what a message must be like
    send.py            from a message to a place in the log
    preparing.py       half messages, as they are stored
    postponing.py      messages that are to be delivered later, as they are stored
    submission.py      messages of many senders, stored together, answered one by one
    duplicates.py      messages that are sent again
    hooked_broker.py   a broker that calls hooks around sends and pulls
    hook_calls.py      ... in their order, timed, whatever they raise
    acknowledgement.py disk and replicas, waited for side by side
    group_transfer.py  ... the replicas

    topics.py          the topic table: an interface, and one in config/topics.json
    watched_topics.py  ... and one that follows a metadata service
    local_table.py     a table in RocketMQ's own file: topics, and groups as well
    watched_table.py   ... that follows a metadata service
    entry_texts.py     ... and what their files say of each entry, made once

    pull.py            messages of a queue from an offset on
    pulled.py          what a consumer wants, and what it gets
    tags.py            tag expressions
    long_poll.py       waiting for a message
    reading.py         one record, if it may be seen
    slave_reads.py     what a slave says, and whom to ask next
    query.py           messages by key, by unique key, by offset id
    offsets.py         first and next offsets, offsets by time, the list of queues

and, compiled, what plain sends go through::

    compiled/sender.py  checks and stores a plain message; the twin of send.py

Nothing here opens a file (but the topic tables, through the `Disk` they are given) or knows gRPC. Everything runs on
the event loop.
"""
