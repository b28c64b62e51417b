"""The commit log: its files, appending, flushing, reading, retention.

commit_log.py           appending
examining.py            looking at a stretch again, with checksums
flush.py                group commit
mapped_file.py          one of its files
mapped_file_queue.py    its files, in order
retention.py            old files go
scan.py                 reading from one offset to another, across files, blanks and damage
syncing.py              files are synced beside the loop
tail.py                 what lies after the last good record is kept, then zeroed
touching.py             records that are to be read soon come into memory
walkers.py              which walker reads: the compiled one, or the one in Python
"""
