"""`tandemmq.store.v1`, our own gRPC contract for clients.

One noun per file::

    requests.py       protobuf requests as the broker wants them, with defaults
    limits.py         what the settings bound
    answers.py        what the broker says as protobuf
    store_servicer.py the calls with one request and one answer
    send_stream.py    SendStream: pipelined, answers in order
    pull_stream.py    PullStream: sends while there is credit
    room.py           an answer is made when there is room for it
    statuses.py       which statuses the errors are: one row for each kind

Handlers raise `TandemError`s; the guard of `tandemmq.common` makes statuses of them, with the table of `statuses.py`.
"""
