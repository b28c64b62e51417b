"""gRPC for the store: translate, call `broker/`, answer.

No decisions here. One noun per file::

    requests.py       protobuf requests as the broker wants them, with limits and defaults
    answers.py        what the broker says as protobuf
    store_servicer.py the calls with one request and one answer
    send_stream.py    SendStream: pipelined, answers in order
    pull_stream.py    PullStream: sends while there is credit

Errors are not translated here: handlers raise `TandemError`s and the guard of `tandemmq.common` makes statuses of them.
"""
