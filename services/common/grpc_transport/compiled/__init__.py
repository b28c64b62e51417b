"""The short cut of a server's connections, compiled: plain calls of methods that have a short way (`Direct`).

    head_scan.py     whether a header block is that of a plain call, and of which method
    lane_heads.py    the header blocks of a lane's calls, of which the last two are remembered
    begun_calls.py   calls that have begun, and whose requests have not ended
    gathered_request.py  the pieces of a request that comes in several
    lane_slots.py    where the objects around a lane have what it reads and writes of them
    lane_call.py     a call that is not answered yet, as its connection and its short way see it
    call_deadlines.py  the deadlines of calls that are held
    lane.py          plain calls, from their frames to those of their answers
    reactor.py       the sockets of busy connections, read and answered together

What C sees of them is in their .pxd, and what Python sees in their .pyi; frame_bytes.pxd writes numbers and frames,
slots.pxd reads and writes attributes where they lie, and seconds.pxd is a clock that only goes forward, both for all
compiled modules. The lane is given what came and calls `write`,
which is all of its I/O; only the reactor knows sockets. What they do not take is Python's.
"""
