"""The audit: consume queues and index of a store against its commit log.

audit_findings.py      counting what an audit finds
audit_index.py         comparing index files with the keys of the log
audit_job.py           the audit, phase by phase
audit_keeping.py       leaving the result where the store finds it, for its metrics
audit_kernels.py       the look at an index file, in machine code
audit_kinds.py         what an audit can find: names for programs, words for people
audit_page.py          an audit's report as one HTML file
audit_plots.py         the plots of that page, as SVG
audit_queues.py        comparing consume queues on disk with what the log says of them
audit_report.py        what an audit has found, for people and programs
audit_source.py        which store an audit looks at, and how far
audit_statistics.py    what a log holds over time, by topic and by size
audit_tasks.py         the tasks of an audit
"""
