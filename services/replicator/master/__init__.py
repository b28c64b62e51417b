"""The master side: accepts slaves, sends them the log, counts who has what.

* `master`: the side as a whole
* `listener`: the port on which slaves are accepted
* `connection`: one slave's socket
* `sender`: frames into that socket
* `log_files`: the store's log files, for reading
* `transfer`: what a slave is owed and what its reports mean, without I/O
* `replicas`: who has what, and what synchronous sends may count on, without I/O
* `lag`: how old the oldest byte is that a replica does not have
* `roster`: whose acknowledgements count, without I/O
"""
