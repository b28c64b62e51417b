"""Following a log that grows, by its files or over the network.

stream_files.py     following a log in its files
stream_loss.py      messages that a stream should have read and cannot
stream_queues.py    following a store over the network
stream_store.py     the store that a stream follows, asked with patience
"""
