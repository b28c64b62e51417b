"""Files on disk: the commit log and everything derived from it. No gRPC; see `message_store` for the whole."""
