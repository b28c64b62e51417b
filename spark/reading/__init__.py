"""Reading a commit log in pieces: which files, which ranges, where its records end.

layout.py           how a store lays out its files
log_files.py        the files of a commit log, found by their names and mapped for reading
range_reading.py    reading a range of the log as batches
ranges.py           cutting a log into ranges, each the work of one task
running_store.py    whether a directory is the one that a running store has
scan.py             what a scan of the log is asked for
topic_table.py      which messages the topics of a store still keep
walked_end.py       where the records of a log end, found by walking its files
walking.py          walking the records of a range, and saying what in it is no record
"""
