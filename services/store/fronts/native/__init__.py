"""`tandemmq.store.v1` and `tandemmq.delivery.v1`, our own gRPC contracts for clients.

One noun per file::

    requests.py       protobuf requests as the broker wants them, with defaults
    limits.py         what the settings bound
    answers.py        what the broker says as protobuf
    store_servicer.py the calls with one request and one answer
    direct_send.py    a Send, and a SendBatch by the core, from bytes to bytes, without a coroutine
    compiled/         ... its compiled twin, for plain messages
    send_stream.py    SendStream: pipelined, answers in order
    pull_stream.py    PullStream: sends while there is credit
    credit.py         how much more the client of a stream takes
    timed.py          calls are measured
    room.py           an answer is made when there is room for it
    statuses.py       which statuses the errors are: one row for each kind

and of consuming as a group::

    delivery_requests.py  protobuf requests as delivery wants them
    delivery_answers.py   what delivery says as protobuf
    delivery_servicer.py  the calls with one request and one answer
    direct_delivery.py    plain receives and acknowledgements, from bytes to bytes, without a coroutine
    receive_stream.py     ReceiveStream: gives out while there is credit
    attendance.py         heartbeats, and the streams on which clients are asked

and for people::

    operations_servicer.py how groups stand, what waits; topics and groups made by one call
    operations_answers.py  what is seen, as protobuf

Handlers raise `TandemError`s; the guard of `tandemmq.common` makes statuses of them, with the table of `statuses.py`.
"""
