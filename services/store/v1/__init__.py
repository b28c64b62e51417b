"""Generated from protos/tandemmq/store/v1 by `make protos`; the comments there are the API reference."""
