"""A running store at rest: what its background threads have begun is done, so that its directory is of one moment."""

from tandemmq.store.log.message_store import MessageStore


def wait_for_files_ahead(store: MessageStore) -> None:
    """Wait until the thread that makes log files ahead of need has nothing more to do."""
    store._parts.files._maker.submit(int).result()
