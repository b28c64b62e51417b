"""The part of the compiled core that reads and writes messages of `tandemmq.store.v1`.

    send_codec.py   SendRequest and SendResponse

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
