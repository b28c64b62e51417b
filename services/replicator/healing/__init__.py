"""Damaged stretches of the log, fetched again from a peer.

* `healer`: mends our own log
* `healing_service`: tandemmq.replication.v1.Healing: bytes and checksums of our log for the others
* `log_peer`: another node's replicator as a source of log bytes
* `pair_audit`: our log compared with a peer's, by checksums
"""
