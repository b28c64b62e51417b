"""The part of the compiled core that writes and reads records, and makes them durable.

    appender.py      a plain record, into the newest file
    record_run.py    the records that units name, out of a file's mapping
    sync_thread.py   files are synced without the interpreter's lock

What C sees of it is in its .pxd, and what Python sees in its .pyi.
"""
