"""Generated from protos/tandemmq/node/v1; never edited."""
