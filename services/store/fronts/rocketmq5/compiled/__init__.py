"""The part of the compiled core that reads and writes messages of `apache.rocketmq.v2`.

    send_request.py    SendMessageRequest
    send_message.py    from it to the record, and to the SendMessageResponse
    send_answer.pxd    SendMessageResponse
    passed_sends.py    in a gateway: from it to a question, and from the answer to the SendMessageResponse
    ack_message.py     AckMessageRequest, and the AckMessageResponse where all is well
    given_message.py   from a record to the ReceiveMessageResponse that gives it out

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
