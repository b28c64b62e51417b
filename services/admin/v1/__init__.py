"""Generated from protos/tandemmq/admin/v1; never edited."""
