"""Commands for a master and its slaves.

accept_loss.py    `tandem data accept-loss`: lets a store start whose newest log files are gone for good
pair_audit.py     `tandem data audit --pair`: the logs of two nodes, compared with each other by their replicators
replica.py        `tandem replica`, whose verbs most of these are
replication.py    `tandem replica list|promote|follow`: who follows whom
reseed.py         `tandem replica reseed`: lets a slave begin anew
"""
