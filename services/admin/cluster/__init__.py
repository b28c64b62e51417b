"""Nodes and brokers: how they are reached, how they are, and who is master.

* `nodes`: one Node a node: the stubs of its services
* `node_addresses`: which nodes there are
* `channels`: how their services are reached
* `brokers`: which nodes are one broker, and which of them is its master
* `cluster`: all nodes with roles, offsets, lag, disk, versions
* `problems`: what is wrong, in words
* `configuration`: the settings of a node's services
* `role_changes`: promotion, and whom a node follows
"""
