"""The part of the compiled core that reads and writes messages of `tandemmq.broker.v1`.

    link_sends.py   the messages of a LinkRequest, and their answers

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
