"""The part of the compiled core that reads and writes frames of the remoting protocol.

    send_frames.py   SEND_MESSAGE_V2 and its answer
    frame_reads.py   what one read of a connection brings
    pull_frames.py   pulls that find something, and their answers
    json_scan.py     the typed fields of a header in JSON

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
