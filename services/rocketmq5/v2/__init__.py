"""Generated from protos/tandemmq/rocketmq5/v2; never edited."""
