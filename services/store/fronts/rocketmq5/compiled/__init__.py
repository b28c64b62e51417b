"""The part of the compiled core that reads and writes messages of `apache.rocketmq.v2`.

    send_message.py   SendMessageRequest and SendMessageResponse

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
