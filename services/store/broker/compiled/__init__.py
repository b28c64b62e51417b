"""The part of the compiled core that knows what a plain message is.

    plain_message.py  its properties, as they lie in a record
    sender.py         its checks, its queue, its UNIQ_KEY

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
