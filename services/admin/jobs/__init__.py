"""Audits and rebuilds, each in a process of its own.

* `jobs`: which there are, begun and ended
* `job_command`: what is run
* `job_process`: the process
* `job_files`: what is kept of it
"""
