"""The contract of the metadata service, `tandemmq.metadata.v1`; the service itself is `tandemmq.metasync`."""
