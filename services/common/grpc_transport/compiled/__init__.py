"""The short cut of a server's connections, compiled: plain calls of methods that have a short way (`Direct`).

    head_scan.py   whether a header block is that of a plain call, and of which method
    lane.py        calls that come whole, from their frames to those of their answers

What C sees of them is in their .pxd, and what Python sees in their .pyi; frame_bytes.pxd writes numbers and frames. The
lane is given what came and calls `write`, which is all of its I/O; what they do not take is Python's.
"""
