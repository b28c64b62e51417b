"""Commands for a master and its slaves.

accept_loss.py    `tandem accept-loss`: lets a store start whose newest log files are gone for good
pair_audit.py     `tandem audit --pair`: the logs of two nodes, compared with each other by their replicators
replication.py    `tandem replicas`, `tandem promote` and `tandem follow`: who follows whom
reseed.py         `tandem reseed`: lets a slave begin anew
"""
