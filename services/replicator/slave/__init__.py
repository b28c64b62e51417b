"""The slave side: follows a master until it is stopped.

* `slave`: the side as a whole
* `slave_errors`: why it does not follow
* `slave_doubts`: how long it waits for a master that it has refused
* `slave_group`: what it is told of the master's other slaves
* `slave_dial`: dialling a master
* `join`: introducing the connection to the master's replicator
* `slave_proof`: whether bytes that were refused are what the master has
* `slave_search`: where a RocketMQ master's log begins, which does not say so
* `slave_connection`: one HA connection: from its socket into the ring
* `slave_store`: from the ring into our store
* `staging`: the ring: the file through which the bytes pass
* `following`: what is asked for, accepted and reported, without I/O
* `overlap`: the end of our own log, compared with what the master has there
"""
