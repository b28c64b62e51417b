"""Generated from protos/tandemmq/replication/v1; never edited."""
