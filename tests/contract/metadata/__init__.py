"""The contract of tandemmq.metadata.v1, call by call, on both transports."""
