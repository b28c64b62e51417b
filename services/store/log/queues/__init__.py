"""The consume queues.

consume_queue.py          one of them
consume_queue_store.py    all consume queues
queue_offsets.py          the next number of each queue
queue_recovery.py         the end of each queue at a start
queue_repairs.py          units that do not fit the log
queue_stretch.py          a stretch of such units
time_search.py            a queue offset by time
topic_retention.py        messages that are older than their topic keeps them
unsynced.py               files and names that are not durable yet
"""
