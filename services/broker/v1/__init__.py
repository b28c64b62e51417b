"""Generated from protos/tandemmq/broker/v1; never edited."""
