"""The replicator: serves the log to slaves and copies it from a master, over RocketMQ's HA protocol (to come)."""
