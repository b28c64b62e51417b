"""Generated from protos/tandemmq/delivery/v1; never edited."""
