"""Classic RocketMQ clients: the remoting protocol, over connections of `common.net.remoting`.

It translates, authorizes, and maps errors; no more.

One noun per file::

    dispatch.py         the table of handlers, and what is the same for all of them
    call.py             one request on its way to an answer
    identity.py         who makes it, by access key and signature
    statuses.py         errors as response codes
    rules.py            what the front needs to know of the settings
    front.py            the parts that answer, put together: which code is whose
    json_bodies.py      bodies that are JSON
    clients.py          the clients that are there
    commands.py         what the broker tells them of its own accord
    heartbeats.py       clients that live, and that end; who consumes together
    sending.py          sends, single and in batches
    direct_send.py      ... from the bytes of a frame to those of its answer, by the compiled core
    compiled/           that core's part of this protocol
    sent_message.py     a message as a producer sends it
    retry_sends.py      ... and as a consumer sends it to its retry topic
    replies.py          answers to requests of other clients
    pulling.py          pulls
    pull_header.py      ... as consumers ask for them
    filtered_pull.py    ... with a filter over properties
    held_pulls.py       ... that are held until there is something
    popping.py          messages that are given with a receipt
    pop_header.py       ... as consumers ask for them, and acknowledge
    scans.py            the requests whose headers are scanned
    assignments.py      which queues a consumer is to have, and whether it pulls or pops
    request_modes.py    ... as it was set, in RocketMQ's file
    offsets.py          where queues begin and end, and where groups stand
    resets.py           positions that an operator has set, until consumers know
    returns.py          messages that could not be consumed
    queue_locking.py    locks of queues, for ordered consumers
    transactions.py     ends of transactions
    queries.py          messages by key and by place
    recalling.py        messages that wait for their time, taken back
    unserved.py         what has no meaning here, refused by name
    relays.py           what tools ask of consumers
    administration/     what tools and Java slaves ask of a broker
"""
