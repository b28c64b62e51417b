"""The part of the compiled core that reads and writes messages of `tandemmq.store.v1` and `tandemmq.delivery.v1`.

    send_codec.py   SendRequest and SendResponse
    batch_codec.py  SendBatchRequest with one encoded batch, and SendBatchResponse
    consumer_codec.py  ReceiveResponse with records, AcknowledgeRequest and AcknowledgeResponse
    consumer_ways.py   receives and acknowledgements that are held until the end of a turn

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
