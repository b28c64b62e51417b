"""The contract of the replicator, `tandemmq.replication.v1`; the service itself is `tandemmq.replicator`."""
