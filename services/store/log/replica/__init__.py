"""Master and slave, as far as files know of it.

confirmed.py        what replicas have, and consumers may see
mastership.py       `tandem.epoch`: whose log it is, since when
replica.py          a slave's bytes, and changing the role
replica_check.py    whole records that are right, and others
replica_group.py    `tandem.group`: the master and the other slaves
replica_mark.py     `tandem.replica`: where a slave writes
"""
