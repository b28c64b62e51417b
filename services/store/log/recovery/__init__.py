"""Starting, and being put right while it runs.

accepted_loss.py    going on without log files that are gone
damage.py           damaged stretches of the log: what is known of them
file_problems.py    files beside the log that a start cannot use
healing.py          damaged stretches are written anew from a peer's bytes
missing_files.py    log files that should be there
rebuild.py          queues and index from the log
recovery.py         the end of the log, and derived files that agree with it
restoring.py        rebuilds in the background
scrub.py            reading everything before anybody asks
"""
