"""Official RocketMQ 5 clients: `/apache.rocketmq.v2.MessagingService`. Translates, authorizes, maps errors; no more.

One noun per file::

    front.py            the service: its methods, and the parts that answer them
    front_rules.py      what it needs to know of the settings
    answered.py         every call ends in an answer, and is measured
    call.py             one call: who makes it, what it may do, how long it may take
    caller.py           who makes a call, by its headers
    identity.py         who that is, by access key and signature
    signed_direct.py    ... before the short ways of methods
    names.py            namespaces, topics and groups as the store calls them
    statuses.py         errors as codes
    topic_access.py     topics, made at first sight
    routes.py           which queues a topic has, and where
    message_types.py    which types of messages a topic takes
    sending.py          SendMessage
    direct_send.py      ... from the bytes of a request to those of its answer, by the compiled core
    passed_sends.py     ... in a gateway: to questions, and from their answers
    consumer_core.py    what of that core serves consumers
    compiled/           that core's part of this protocol
    sent_message.py     a message as a producer sends it
    body_digest.py      digests of bodies
    receiving.py        ReceiveMessage
    direct_receive.py   ... of simple consumers, from the bytes of a request to those of its answers
    given_message.py    a message as a consumer gets it
    given_messages.py   ... as a part of an answer, in bytes; plain ones by the compiled core
    inflating.py        ... with a body that it can read
    receipts.py         acknowledge, change, forward
    acks.py             ... what is acknowledged, and how that is answered
    direct_ack.py       ... from the bytes of a request to those of its answer
    offsets.py          queues read by offset, as no official client does
    transactions.py     ends of transactions, and recalls
    heartbeats.py       clients that live, and that end
    clients.py          the clients that are there
    client_settings.py  what clients are answered about their settings
    telemetry.py        the stream with each client
    client_metrics.py   what clients measure
"""
