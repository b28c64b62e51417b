"""Generated from protos/tandemmq/metadata/v1; never edited."""
