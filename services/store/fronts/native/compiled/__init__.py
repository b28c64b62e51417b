"""The part of the compiled core that reads and writes messages of `tandemmq.store.v1`.

    send_codec.py   SendRequest and SendResponse
    batch_codec.py  SendBatchRequest with one encoded batch, and SendBatchResponse

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
