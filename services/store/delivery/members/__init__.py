"""The groups, and the clients that are there for them.

* `groups`: consumer groups and their settings, as a table
* `sessions`: the clients that are there, and what may be asked of them
* `member_questions`: what an operator asks of one of them
* `queue_locks`: queues that ordered classic consumers have locked
"""
