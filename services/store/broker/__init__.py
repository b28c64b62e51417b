"""What the store's operations mean, between the files (`log/`) and the network (`fronts/`).

One noun per file::

    broker.py         the broker port: all of it as calls, for every protocol
    acknowledgement.py disk and replicas, waited for side by side
    errors.py         refusals, each with its gRPC code and its RocketMQ status
    topics.py         the topic table: an interface, and one in config/topics.json
    watched_topics.py ... and one that follows a metadata service
    rules.py          what a message must be like
    send.py           from a message to a place in the log
    tags.py           tag expressions
    reading.py        one record, if it may be seen
    pull.py           messages of a queue from an offset on
    long_poll.py      waiting for a message
    query.py          messages by key, by unique key, by offset id
    offsets.py        first and next offsets, offsets by time, the list of queues

Nothing here opens a file (but the topic table, through the `Disk` it is given) or knows gRPC. Everything runs on the
event loop.
"""
