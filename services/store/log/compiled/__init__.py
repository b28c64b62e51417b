"""The part of the compiled core that writes and reads records.

    appender.py     a plain record, into the mapping of the newest file
    record_run.py   the records that units name, out of a file's mapping

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
