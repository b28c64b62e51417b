"""The metadata service: topics, subscription groups and offsets, kept equal between brokers (to come)."""
