"""The hash index.

index.py               the hash index
index_comparison.py    the index beside the log
index_file.py          one of its files
index_recovery.py      the end of the index at a start
index_repairs.py       an index that does not fit the log
"""
